# The Chinese ↔ English model from the corpora to the file: `make zh-en-model DATA=DIR`.
# DATA holds train/, dev/ and mono/ (docs/concepts/zh-en-model.md says what, and where each can be had); all that is made
# goes to WORK. Stop it at any moment: the same command goes on.
WORK ?= runs/zh-en
PYTHON ?= .venv/bin/python
SIXFOLD = $(PYTHON) -m sixfold
CORPORA := $(basename $(basename $(notdir $(wildcard $(DATA)/train/*.tsv.xz))))
LINKS := $(foreach part,train dev mono,$(WORK)/$(part))

.DELETE_ON_ERROR:

$(WORK)/zh-en.safetensors: $(WORK)/packed.safetensors src/sixfold/pretrained/zh-en.card.toml
	$(PYTHON) benchmarks/shipped.py $(DATA) --model $< --card $(WORK)/scores.toml
	$(PYTHON) benchmarks/confidence.py $(DATA) --model $< --card $(WORK)/confidence.toml
	cat $(WORK)/scores.toml $(WORK)/confidence.toml > $(WORK)/measured.toml
	$(SIXFOLD) pack $< --output $@ --card $(WORK)/measured.toml --align $(DATA)/dev/tatoeba.zh $(DATA)/dev/tatoeba.en
	$(SIXFOLD) report $(WORK)/zh-en-first $(WORK)/zh-en-second --output $(WORK)/report.html

$(WORK)/packed.safetensors: $(WORK)/zh-en-second/model.safetensors src/sixfold/pretrained/zh-en.card.toml
	$(SIXFOLD) pack $< --output $@ --card src/sixfold/pretrained/zh-en.card.toml

# A bad corpus is seen here before an hour of a GPU is spent on it: `make -f recipes/zh-en.mk DATA=DIR audit`.
audit: $(CORPORA:%=$(WORK)/audit/%/doctor.json)

$(WORK)/audit/%/doctor.json: | $(LINKS)
	$(SIXFOLD) doctor $(WORK)/train/$*.tsv.xz --output $(@D) --json > /dev/null

# Two rungs of the same weights: `make -f recipes/zh-en.mk DATA=DIR second`, after `audit` if the corpora are new. The first rung learns from all corpora and from
# made/, and translates monolingual text. The second rung goes on with the corpora and these translations.
# TRANSLATE_FOR limits the time for translating, as `timeout` reads it (0: no limit); what is translated by then is used.
# PARTS processes translate the text of a language at the same time, on one GPU, and one more translates its spoken text.
MADE := $(foreach name,noisy-zh noisy-en spans named counted,$(WORK)/made/$(name).tsv.xz)
MONO_EN ?= enwiki_core openstax wikinews factbook simplewiki wikisplit
MONO_ZH ?= zhwiki_core drcd cmrc2018 ud_gsd mlqa zhwiki
SPOKEN_EN ?= commonvoice gum
SPOKEN_ZH ?= commonvoice
MONO_LINES ?= 0
PARTS ?= 5
TRANSLATE_FOR ?= 0
FIRST_OPTIONS ?=
SECOND_OPTIONS ?=
PART_NUMBERS := $(shell seq 0 $$(($(PARTS) - 1)))
TRANSLATED := $(WORK)/translated/from-en.tsv $(WORK)/translated/from-zh.tsv

.PHONY: audit first translated second
first: $(WORK)/zh-en-first/model.safetensors
translated: $(TRANSLATED)
second: $(WORK)/zh-en-second/model.safetensors

$(MADE) &: recipes/zh_en_corpora.py | $(LINKS)
	$(PYTHON) $< $(DATA) --out $(WORK)/made
	xz --force $(WORK)/made/*.tsv

$(WORK)/zh-en-first/model.safetensors: recipes/zh-en-first.toml recipes/corpora/zh-en.toml $(MADE) | $(LINKS)
	$(SIXFOLD) train $< --data $(WORK) --output $(@D) $(FIRST_OPTIONS)
	test -e $@

$(WORK)/translated/original.en.0: CORPORA_OF = --corpora $(MONO_EN) --spoken $(SPOKEN_EN)
$(WORK)/translated/original.zh.0: CORPORA_OF = --corpora $(MONO_ZH) --spoken $(SPOKEN_ZH)
$(WORK)/translated/original.%.0: recipes/zh_en_mono.py | $(LINKS)
	$(PYTHON) $< parts $(DATA) --language $* $(CORPORA_OF) --parts $(PARTS) --lines $(MONO_LINES) --out $(@D)

$(WORK)/translated/from-en.tsv: TO = zh
$(WORK)/translated/from-zh.tsv: TO = en
$(TRANSLATED): $(WORK)/translated/from-%.tsv: $(WORK)/translated/original.%.0 $(WORK)/zh-en-first/model.safetensors
	for part in $(PART_NUMBERS) $(PARTS); do \
	  { test -e $(@D)/translated.$*.$$part || timeout --kill-after 20 $(TRANSLATE_FOR) \
	      $(SIXFOLD) translate $(@D)/original.$*.$$part --to $(TO) --format text --beam 1 --no-split --no-guard --resume \
	      --model $(word 2,$^) --output $(@D)/translated.$*.$$part; \
	    $(PYTHON) recipes/zh_en_mono.py pairs $(@D) --language $* --part $$part; } & \
	done; wait
	cat $(@D)/from-$*.$(PARTS).tsv > $(@D)/spoken-$*.tsv
	cat $(PART_NUMBERS:%=$(@D)/from-$*.%.tsv) > $@
	test -s $@

$(WORK)/zh-en-second/model.safetensors: recipes/zh-en-second.toml recipes/corpora/zh-en.toml $(MADE) $(TRANSLATED)
	$(SIXFOLD) train $< --data $(WORK) --output $(@D) $(SECOND_OPTIONS)
	test -e $@

$(LINKS): $(WORK)/%:
	@test -d '$(DATA)/$*' || { echo 'DATA: expected a folder with $*/ in it; got "$(DATA)"' >&2; exit 2; }
	mkdir -p $(WORK)
	ln -s '$(abspath $(DATA))/$*' $@
