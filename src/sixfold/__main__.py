"""`python -m sixfold` is `sixfold`."""

from sixfold.cli.main import main

if __name__ == "__main__":
    main()
