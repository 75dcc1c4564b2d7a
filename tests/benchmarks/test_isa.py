"""The report on machine code counts what the compiler printed."""

from __future__ import annotations

import pytest
from isa import Loop, read_codes

PRINTED = """a driver's note
=== begin conv-0123456789ab.glsl
SHADER KEY
  source_blake3 = {0x1}
Shader main disassembly:
 BB0:
	v_mov_b32_e32 v0, 0                                         ; 7e000280
	v_fma_f32 v1, v2, v3, v4                                    ; outside of all loops
 BB1:
	s_mov_b32 s0, 0
 BB2:
	s_buffer_load_dwordx4 s[4:7], s[0:3], 0x0                   ; by the wave, not by a lane
	buffer_load_dwordx4 v[4:7], v0, s[0:3], 0 offen
	buffer_load_format_xy v[8:9], v0, s[0:3], 0 offen
	s_waitcnt vmcnt(0)
	v_fmac_f32_e32 v1, v4, v5
	v_pk_fma_f32 v[2:3], v[4:5], v[6:7], v[2:3]
	v_dual_fmac_f32 v1, v4, v5 :: v_dual_fmac_f32 v2, v6, v7
	v_dual_fmac_f32 v1, v4, v5 :: v_dual_mov_b32 v2, v6
	v_add_nc_u32_e32 v0, 16, v0
	ds_read_b32 v9, v0
	s_cbranch_scc1 BB2
	s_cbranch_scc1 BB1
	s_endpgm
*** SHADER CONFIG ***
*** SHADER STATS ***
SGPRS: 128
VGPRS: 96
Spilled SGPRs: 1
Spilled VGPRs: 2
Code Size: 5872 bytes
LDS: 512 bytes
Max Waves: 5
=== end conv-0123456789ab.glsl
=== begin pool-0123456789ab.glsl
=== end pool-0123456789ab.glsl
=== begin move-0123456789ab.glsl
SHADER KEY
 BB0:
	exp mrt0 v0, v1, v2, v3 done vm
*** SHADER STATS ***
VGPRS: 8
Code Size: 8 bytes
Max Waves: 16
SHADER KEY
 BB0:
	v_mul_f32_e32 v0, v1, v2
	image_load v[0:3], v[4:5], s[0:7]
*** SHADER STATS ***
VGPRS: 16
Code Size: 64 bytes
Max Waves: 16
=== end move-0123456789ab.glsl
"""


def test_the_hottest_loop_is_counted() -> None:
    conv = next(read_codes(PRINTED))
    assert (conv.kernel, conv.registers, conv.waves, conv.spills) == ("conv", 96, 5, 3)
    assert (conv.shared, conv.size) == (512, 5872)
    (loop,) = conv.loops
    assert loop == Loop(instructions=11, multiply_adds=6, vector=5, multiplying=4, bytes_loaded=24, waits=1)
    assert loop.share == pytest.approx(4 / 5) and loop.bytes_each == 4


def test_loops_of_about_as_many_multiply_adds_are_all_hottest() -> None:
    label, branch = " BB{0}:\n", "\ts_cbranch_scc1 BB{0}\n"
    loops = [(label + "\tv_fma_f32 v1, v2, v3, v1\n" * count + branch).format(count) for count in (10, 3, 9, 8)]
    codes = read_codes(PRINTED.replace("\ts_cbranch_scc1 BB1\n", "".join(loops)))
    assert [loop.multiply_adds for loop in next(codes).loops] == [10, 9]


def test_a_shader_without_loops_counts_whole_and_its_larger_part_speaks() -> None:
    move = list(read_codes(PRINTED))[1]
    assert (move.kernel, move.registers, move.size) == ("move", 16, 64)
    assert move.loops == [Loop(instructions=2, multiply_adds=0, vector=1, multiplying=0, bytes_loaded=16, waits=0)]
