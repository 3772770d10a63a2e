"""Profiles of English and Chinese that are learnt from random sentences of frequent words, for tests of detection."""

import random
from functools import cache

from sixfold.text.language_profiles import LanguageProfile, learn_profile

ENGLISH_WORDS = """
the the the of and to in a is that for it was on are as with they at be this from have or by one had not but what all
were when we there can an your which their said if do will each about how up out them then she many some so these
would other into has more her two like him see time could no make than first been its who now people my made over did
down only way find use may water long little very after words called just where most know get through back much go
good new write our me man too any day same right look think also around another came come work three must because does
part even place well such here take why things help put years different away again off went old number great tell men
say small every found still between name should home big give air line set own under read last never us left end along
while might next sound below saw something thought both few those always show large often together asked house world
going want school important until form food keep children feet land side without boy once animals life enough took
sometimes four head above kind began almost live page got earth need far hand high year mother light parts country
father let night following picture being study second eyes soon times story boys since white days ever paper hard near
sentence better best across during today others however sure means knew try told young miles sun ways thing whole hear
example heard several change answer room sea against top turned learn point city play toward five using himself
usually money seen car morning long horse study cold hello welcome thanks please sorry river table window weather
friend teacher language translation model computer machine library raining station summer winter yesterday tomorrow
minutes seven eight nine hundred thousand building bridge blue green yellow black round short loud quiet heavy strong
clean empty warm happy hungry ready possible
"""
CHINESE_WORDS = """
我们 你们 他们 今天 明天 昨天 中国 北京 上海 学校 老师 学生 机器 学习 翻译 模型 句子 语言 中文 英文 文本 语料
训练 注意力 词表 图书馆 天气 很好 非常 因为 所以 但是 如果 可以 应该 需要 使用 运行 安装 文件 数据 结果 问题
方法 时间 工作 生活 朋友 喜欢 知道 认为 觉得 看到 听说 的 了 是 在 有 和 不 这 那 我 你 他 她 也 都 就 还 要 会
能 对 从 把 被 给 去 来 到 说 做 吃 喝 走 看 大 小 多 少 新 旧 高 低 快 慢 一个 两个 三天 四年 公司 城市 国家
世界 经济 发展 历史 文化 科学 技术 电影 音乐 飞机 火车 汽车 电话 电脑 手机
"""


def made_lines(text: str, join: str = " ", count: int = 3000) -> list[str]:
    """Return lines of eight random words of a text each."""
    generator, words = random.Random(1), text.split()
    return [join.join(generator.choices(words, k=8)) for _ in range(count)]


@cache
def english_lines() -> list[str]:
    """Return lines of English words, about 100,000 letters."""
    return made_lines(ENGLISH_WORDS)


@cache
def chinese_lines() -> list[str]:
    """Return lines of Chinese words, about 40,000 characters."""
    return made_lines(CHINESE_WORDS, "")


@cache
def profile_of(language: str) -> LanguageProfile:
    """Return the profile of en or zh."""
    profile = learn_profile({"en": english_lines, "zh": chinese_lines}[language](), language)
    assert profile is not None
    return profile
