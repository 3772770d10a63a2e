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

# A teacher and a student: `make -f recipes/zh-en.mk DATA=DIR student`. The teacher learns from all corpora and from made/,
# and translates monolingual text. The smaller student learns from the corpora and from these translations, and is packed.
# TRANSLATE_FOR limits the time for translating, as `timeout` reads it (0: no limit); what is translated by then is used.
# PARTS processes translate the text of a language at the same time, on one GPU.
MADE := $(foreach name,noisy-zh noisy-en spans named counted,$(WORK)/made/$(name).tsv.xz)
MONO_EN ?= enwiki_core openstax wikinews gum factbook commonvoice simplewiki wikisplit
MONO_ZH ?= zhwiki_core drcd cmrc2018 ud_gsd mlqa commonvoice zhwiki
MONO_LINES ?= 0
PARTS ?= 5
TRANSLATE_FOR ?= 0
TEACHER_OPTIONS ?=
STUDENT_OPTIONS ?=
PART_NUMBERS := $(shell seq 0 $$(($(PARTS) - 1)))
TRANSLATED := $(WORK)/translated/from-en.tsv $(WORK)/translated/from-zh.tsv

.PHONY: teacher student
teacher: $(WORK)/zh-en-teacher/model.safetensors
student: $(WORK)/student.safetensors

$(MADE) &: recipes/zh_en_corpora.py | $(LINKS)
	$(PYTHON) $< $(DATA) --out $(WORK)/made
	xz --force $(WORK)/made/*.tsv

$(WORK)/zh-en-teacher/model.safetensors: recipes/zh-en-teacher.toml recipes/corpora/zh-en.toml $(MADE) | $(LINKS)
	$(SIXFOLD) train $< --data $(WORK) --output $(@D) $(TEACHER_OPTIONS)
	test -e $@

$(WORK)/translated/original.en.0: CORPORA_OF = $(MONO_EN)
$(WORK)/translated/original.zh.0: CORPORA_OF = $(MONO_ZH)
$(WORK)/translated/original.%.0: recipes/zh_en_mono.py | $(LINKS)
	$(PYTHON) $< parts $(DATA) --language $* --corpora $(CORPORA_OF) --parts $(PARTS) --lines $(MONO_LINES) --out $(@D)

$(WORK)/translated/from-en.tsv: TO = zh
$(WORK)/translated/from-zh.tsv: TO = en
$(TRANSLATED): $(WORK)/translated/from-%.tsv: $(WORK)/translated/original.%.0 $(WORK)/zh-en-teacher/model.safetensors
	for part in $(PART_NUMBERS); do \
	  { test -e $(@D)/translated.$*.$$part || timeout --kill-after 20 $(TRANSLATE_FOR) \
	      $(SIXFOLD) translate $(@D)/original.$*.$$part --to $(TO) --format text --beam 1 --no-split --no-guard --resume \
	      --model $(word 2,$^) --output $(@D)/translated.$*.$$part; \
	    $(PYTHON) recipes/zh_en_mono.py pairs $(@D) --language $* --part $$part; } & \
	done; wait
	cat $(PART_NUMBERS:%=$(@D)/from-$*.%.tsv) > $@
	test -s $@

$(WORK)/zh-en-student/model.safetensors: recipes/zh-en-student.toml recipes/corpora/zh-en.toml $(MADE) $(TRANSLATED)
	$(SIXFOLD) train $< --data $(WORK) --output $(@D) $(STUDENT_OPTIONS)
	test -e $@

$(WORK)/student.safetensors: $(WORK)/zh-en-student/model.safetensors
	$(SIXFOLD) pack $< --output $@

$(LINKS): $(WORK)/%:
	@test -d '$(DATA)/$*' || { echo 'DATA: expected a folder with $*/ in it; got "$(DATA)"' >&2; exit 2; }
	mkdir -p $(WORK)
	ln -s '$(abspath $(DATA))/$*' $@
