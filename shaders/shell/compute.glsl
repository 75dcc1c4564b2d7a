#version 430
// One invocation computes one output element, one texel of four if the body defines texel(), TEXELS texels if it
// defines strip(), or one tile, which the body stores. Two elements share a word of an output of halves (O_HALVES).
// With TOUCHED only elements of replaced rows are computed. In a grid, a work group has GROUP_ROWS rows; with one, all
// its invocations have the same y, and compilers know it. A launch may be a part of all: it begins with the invocation
// O_first.x and the row O_first.y.
uniform ivec2 O_first;
$declarations
layout(local_size_x = GROUP_COLUMNS, local_size_y = GROUP_ROWS) in;
$math
$touched
$functions
$body
void main() {
    int o = O_first.x + int(gl_GlobalInvocationID.x);
#if defined(GRID)
#if GROUP_ROWS == 1
    tile(ivec3(o, O_first.y + int(gl_WorkGroupID.y), gl_WorkGroupID.z));
#else
    tile(ivec3(o, O_first.y + int(gl_GlobalInvocationID.y), gl_WorkGroupID.z));
#endif
#elif defined(TILE)
    if (o < O_tiles) tile(o);
#elif defined(STRIP)
    int first = o * TEXELS, count = min(TEXELS, (O_size + 3) / 4 - first);
    if (count <= 0) return;
    O_VECTOR result[TEXELS];
    strip(first, result);
    for (int k = 0; k < count; ++k) store(first + k, result[k]);
#elif defined(TEXEL)
    if (o < (O_size + 3) / 4) store(o, texel(o));
#else
#ifdef TOUCHED
    o = touched_unit(o);
    if (o < 0) return;
#endif
#ifdef O_HALVES
    o *= 2;
    if (o < O_size) store(o >> 1, vec2(element(o), o + 1 < O_size ? element(o + 1) : 0.0));
#else
    if (o < O_size) store(o, element(o));
#endif
#endif
}
