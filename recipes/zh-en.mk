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
	$(SIXFOLD) report $(WORK)/zh-en $(WORK)/zh-en-2 $(WORK)/zh-en-3 --output $(WORK)/report.html

$(WORK)/packed.safetensors: $(WORK)/zh-en-3/model.safetensors src/sixfold/pretrained/zh-en.card.toml
	$(SIXFOLD) pack $< --output $@ --card src/sixfold/pretrained/zh-en.card.toml

# Audited first, so that a bad corpus is seen before an hour of a GPU is spent on it.
$(WORK)/zh-en/model.safetensors: $(CORPORA:%=$(WORK)/audit/%/doctor.json)
$(WORK)/zh-en-2/model.safetensors: $(WORK)/bt/commonvoice.zh $(WORK)/bt/commonvoice.en $(WORK)/zh-en/model.safetensors
$(WORK)/zh-en-3/model.safetensors: $(WORK)/zh-en-2/model.safetensors

$(WORK)/%/model.safetensors: recipes/%.toml | $(LINKS)
	$(SIXFOLD) train $< --data $(WORK) --output $(@D)
	test -e $@

$(WORK)/audit/%/doctor.json: | $(LINKS)
	$(SIXFOLD) doctor $(WORK)/train/$*.tsv.xz --output $(@D) --json > /dev/null

# Text of one language, translated into the other: sources to learn from, never targets.
$(WORK)/bt/commonvoice.zh: FROM = en
$(WORK)/bt/commonvoice.en: FROM = zh
$(WORK)/bt/commonvoice.%: $(WORK)/zh-en/model.safetensors | $(LINKS)
	mkdir -p $(@D)
	xz --decompress --stdout $(WORK)/mono/commonvoice.$(FROM).xz > $(@D)/mono.$(FROM)
	$(SIXFOLD) translate $(@D)/mono.$(FROM) --to $* --beam 1 --no-split --resume --model $< --output $@

# The second generation: a larger teacher, trained on all corpora and on made/, then on text of one language that it has
# translated itself. `make -f recipes/zh-en.mk DATA=DIR teacher` runs these rungs.
MADE := $(foreach name,noisy-zh noisy-en spans named counted,$(WORK)/made/$(name).tsv.xz)
MONO_EN ?= enwiki_core openstax wikinews gum commonvoice
MONO_ZH ?= zhwiki_core drcd cmrc2018 ud_gsd commonvoice

.PHONY: teacher
teacher: $(WORK)/zh-en-teacher-2/model.safetensors

$(MADE) &: recipes/zh_en_corpora.py | $(LINKS)
	$(PYTHON) $< $(DATA) --out $(WORK)/made
	xz --force $(WORK)/made/*.tsv

$(WORK)/zh-en-teacher/model.safetensors: $(MADE)
$(WORK)/zh-en-teacher-2/model.safetensors: $(MADE) $(WORK)/bt/mono.zh $(WORK)/bt/mono.en

$(WORK)/bt/mono.en-original: | $(LINKS)
	mkdir -p $(@D)
	xz --decompress --stdout $(MONO_EN:%=$(WORK)/mono/%.en.xz) > $@
$(WORK)/bt/mono.zh-original: | $(LINKS)
	mkdir -p $(@D)
	xz --decompress --stdout $(MONO_ZH:%=$(WORK)/mono/%.zh.xz) > $@
$(WORK)/bt/mono.zh: $(WORK)/bt/mono.en-original $(WORK)/zh-en-teacher/model.safetensors
	$(SIXFOLD) translate $< --to zh --beam 1 --no-split --no-guard --resume --model $(word 2,$^) --output $@
$(WORK)/bt/mono.en: $(WORK)/bt/mono.zh-original $(WORK)/zh-en-teacher/model.safetensors
	$(SIXFOLD) translate $< --to en --beam 1 --no-split --no-guard --resume --model $(word 2,$^) --output $@

$(LINKS): $(WORK)/%:
	@test -d '$(DATA)/$*' || { echo 'DATA: expected a folder with $*/ in it; got "$(DATA)"' >&2; exit 2; }
	mkdir -p $(WORK)
	ln -s '$(abspath $(DATA))/$*' $@
