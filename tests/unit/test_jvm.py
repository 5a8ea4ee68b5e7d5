"""What a JVM says of its heap."""

from tidegate_bench.rig.jvm import used_mib

SAID = """0
DefNew     total 116224K, used 19234K [0x00000000c0000000, 0x00000000c7e10000, 0x00000000d5550000)
 eden space 103360K,  16% used [0x00000000c0000000, 0x00000000c1079e70, 0x00000000c64f0000)
 from space 12864K,  18% used [0x00000000c64f0000, 0x00000000c673ea58, 0x00000000c7180000)
Tenured    total 258048K, used 64402K [0x00000000d5550000, 0x00000000e5150000, 0x0000000100000000)
 the  space 258048K,  24% used [0x00000000d5550000, 0x00000000d9434848, 0x00000000e5150000)
"""


def test_both_generations_count_and_their_spaces_not_again() -> None:
    assert used_mib(SAID) == (19_234 + 64_402) / 1024
