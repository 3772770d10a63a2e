"""Text as lines, sentences and languages; the tokeniser and how it is learnt."""
