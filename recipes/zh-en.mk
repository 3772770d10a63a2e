# The Chinese ↔ English model from the corpora to the file: `make zh-en-model DATA=DIR`.
# DATA holds train/, dev/ and mono/ (docs/concepts/zh-en-model.md says what, and where each can be had); all that is made
# goes to WORK. Stop it at any moment: the same command goes on.
WORK ?= runs/zh-en
PYTHON ?= .venv/bin/python
SIXFOLD = $(PYTHON) -m sixfold
CORPORA := $(basename $(basename $(notdir $(wildcard $(DATA)/train/*.tsv.xz))))
LINKS := $(foreach part,train dev mono,$(WORK)/$(part)) $(WORK)/own

.DELETE_ON_ERROR:

$(WORK)/zh-en.safetensors: $(WORK)/again/packed.safetensors src/sixfold/pretrained/zh-en.card.toml
	$(PYTHON) benchmarks/shipped.py $(DATA) --model $< --card $(WORK)/scores.toml
	$(PYTHON) benchmarks/confidence.py $(DATA) --model $< --card $(WORK)/confidence.toml
	cat $(WORK)/scores.toml $(WORK)/confidence.toml > $(WORK)/measured.toml
	$(SIXFOLD) pack $< --output $@ --card $(WORK)/measured.toml --align $(DATA)/dev/tatoeba.zh $(DATA)/dev/tatoeba.en
	$(SIXFOLD) report $(addprefix $(WORK)/,zh-en-first zh-en-second zh-en-teacher zh-en-third again/zh-en-teacher \
	  again/zh-en-third) --output $(WORK)/report.html

$(WORK)/packed.safetensors: $(WORK)/zh-en-third/model.safetensors src/sixfold/pretrained/zh-en.card.toml
	$(SIXFOLD) pack $< --output $@ --card src/sixfold/pretrained/zh-en.card.toml

# A bad corpus is seen here before an hour of a GPU is spent on it: `make -f recipes/zh-en.mk DATA=DIR audit`.
audit: $(CORPORA:%=$(WORK)/audit/%/doctor.json)

$(WORK)/audit/%/doctor.json: | $(LINKS)
	$(SIXFOLD) doctor $(WORK)/train/$*.tsv.xz --output $(@D) --json > /dev/null

# Four rungs, each with its recipe: `make -f recipes/zh-en.mk DATA=DIR third`, after `audit` if the corpora are new.
#   first    8+2 layers learn from all corpora and from made/
#   second   the same weights go on, with monolingual text that the first rung has translated
#   teacher  the second rung made deeper (14+4 layers) goes on, with text that the second rung has translated
#   third    the second rung goes on, with text that the teacher has translated
#   again    teacher and third rung once more, from the third rung instead of the second
# TRANSLATE_FOR limits the time for translating, as `timeout` reads it (0: no limit); what is translated by then is used.
# PARTS processes translate the text of a language at the same time, on one GPU, and one more translates its spoken text.
MADE := $(foreach name,noisy-zh noisy-en words spans named counted,$(WORK)/made/$(name).tsv.xz)
OWN := $(wildcard recipes/corpora/*.tsv)
MONO_EN ?= enwiki_core openstax wikinews factbook simplewiki wikisplit
MONO_ZH ?= zhwiki_core drcd cmrc2018 ud_gsd mlqa zhwiki
SPOKEN_EN ?= commonvoice gum
SPOKEN_ZH ?= commonvoice
MONO_LINES ?= 0
PARTS ?= 5
TRANSLATE_FOR ?= 0
FIRST_OPTIONS ?=
SECOND_OPTIONS ?=
TEACHER_OPTIONS ?=
THIRD_OPTIONS ?=
PART_NUMBERS := $(shell seq 0 $$(($(PARTS) - 1)))

.PHONY: audit first second teacher third again by-first by-second by-teacher
again: $(WORK)/again/packed.safetensors
first second teacher third: %: $(WORK)/zh-en-%/model.safetensors
by-first by-second by-teacher: by-%: $(WORK)/by-%/from-en.tsv $(WORK)/by-%/from-zh.tsv

$(MADE) &: recipes/zh_en_corpora.py recipes/zh_en_noise.py recipes/zh_en_words.py $(OWN) | $(LINKS)
	$(PYTHON) $< $(DATA) --out $(WORK)/made
	xz --force $(WORK)/made/*.tsv

$(WORK)/zh-en-first/model.safetensors: recipes/zh-en-first.toml recipes/corpora/zh-en.toml $(MADE) | $(LINKS)
	$(SIXFOLD) train $< --data $(WORK) --output $(@D) $(FIRST_OPTIONS)
	test -e $@

$(WORK)/parts/original.en.0: CORPORA_OF = --corpora $(MONO_EN) --spoken $(SPOKEN_EN)
$(WORK)/parts/original.zh.0: CORPORA_OF = --corpora $(MONO_ZH) --spoken $(SPOKEN_ZH)
$(WORK)/parts/original.%.0: recipes/zh_en_mono.py | $(LINKS)
	$(PYTHON) $< parts $(DATA) --language $* $(CORPORA_OF) --parts $(PARTS) --lines $(MONO_LINES) --out $(@D)

# translated_by,RUNG: the monolingual text of either language, translated by the model of a rung.
define translated_by
$(WORK)/by-$(1)/from-%.tsv: $(WORK)/parts/original.%.0 $(WORK)/zh-en-$(1)/model.safetensors
	mkdir -p $$(@D)
	for part in $(PART_NUMBERS) $(PARTS); do \
	  { test -e $$(@D)/translated.$$*.$$$$part || timeout --kill-after 20 $(TRANSLATE_FOR) \
	      $(SIXFOLD) translate $$(<D)/original.$$*.$$$$part --from $$* --to $$(if $$(filter en,$$*),zh,en) --format text \
	      --beam 1 --no-split --no-guard --resume --model $$(word 2,$$^) --output $$(@D)/translated.$$*.$$$$part; \
	    $(PYTHON) recipes/zh_en_mono.py pairs $$(@D) --originals $$(<D) --language $$* --part $$$$part; } & \
	done; wait
	cat $$(@D)/from-$$*.$(PARTS).tsv > $$(@D)/spoken-$$*.tsv
	cat $$(PART_NUMBERS:%=$$(@D)/from-$$*.%.tsv) > $$@
	test -s $$@
endef
$(foreach rung,first second teacher,$(eval $(call translated_by,$(rung))))

$(WORK)/zh-en-second/model.safetensors: recipes/zh-en-second.toml recipes/corpora/zh-en.toml $(MADE) \
    $(WORK)/by-first/from-en.tsv $(WORK)/by-first/from-zh.tsv
	$(SIXFOLD) train $< --data $(WORK) --output $(@D) $(SECOND_OPTIONS)
	test -e $@

$(WORK)/zh-en-deeper.safetensors: recipes/zh_en_deeper.py $(WORK)/zh-en-second/model.safetensors
	$(PYTHON) $^ --encoder-layers 14 --decoder-layers 4 --output $@

$(WORK)/zh-en-teacher/model.safetensors: recipes/zh-en-teacher.toml recipes/corpora/zh-en-more.toml $(MADE) \
    $(WORK)/zh-en-deeper.safetensors $(WORK)/by-second/from-en.tsv $(WORK)/by-second/from-zh.tsv
	$(SIXFOLD) train $< --data $(WORK) --output $(@D) $(TEACHER_OPTIONS)
	test -e $@

$(WORK)/zh-en-third/model.safetensors: recipes/zh-en-third.toml recipes/corpora/zh-en-more.toml $(MADE) \
    $(WORK)/by-teacher/from-en.tsv $(WORK)/by-teacher/from-zh.tsv
	$(SIXFOLD) train $< --data $(WORK) --output $(@D) $(THIRD_OPTIONS)
	test -e $@

# The teacher and the third rung once more, in WORK/again, where the packed file of the third rung takes the place of the
# second rung. By hand, as it was run: the targets below with WORK=NEW and `-o NEW/zh-en-second/model.safetensors`.
$(WORK)/again/packed.safetensors: $(WORK)/packed.safetensors $(MADE) $(WORK)/parts/original.en.0 $(WORK)/parts/original.zh.0
	mkdir -p $(@D)/zh-en-second
	ln -sfn ../made ../parts $(@D)
	cp $< $(@D)/zh-en-second/model.safetensors
	$(MAKE) -f recipes/zh-en.mk DATA='$(DATA)' WORK=$(@D) -o $(@D)/zh-en-second/model.safetensors $@

$(filter-out %/own,$(LINKS)): $(WORK)/%:
	@test -d '$(DATA)/$*' || { echo 'DATA: expected a folder with $*/ in it; got "$(DATA)"' >&2; exit 2; }
	mkdir -p $(WORK)
	ln -s '$(abspath $(DATA))/$*' $@

$(WORK)/own:
	mkdir -p $(WORK)
	ln -s '$(abspath recipes/corpora)' $@
