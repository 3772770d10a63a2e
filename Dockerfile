# A server that translates Chinese and English, without torch: docker build -t sixfold . && docker run --read-only --tmpfs /tmp -p 5000:5000 sixfold
FROM python:3.12-slim AS build
COPY . /source
RUN python -m venv /sixfold && /sixfold/bin/pip install --no-cache-dir --constraint /source/constraints.txt /source

FROM python:3.12-slim
COPY --from=build /sixfold /sixfold
RUN useradd --system --no-create-home sixfold
USER sixfold
ENV PATH=/sixfold/bin:$PATH SIXFOLD_CACHE=/tmp/sixfold PYTHONDONTWRITEBYTECODE=1
EXPOSE 5000
HEALTHCHECK CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:5000/health', timeout=3)"]
ENTRYPOINT ["sixfold", "serve", "--host", "0.0.0.0"]
