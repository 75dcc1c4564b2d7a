#version 430
// One invocation computes one output element, one texel of four if the body defines texel(), TEXELS texels if it
// defines strip(), or one tile, which the body stores. In a grid, a work group has GROUP_ROWS rows; with one, all its
// invocations have the same y, and compilers know it.
$declarations
layout(local_size_x = GROUP_COLUMNS, local_size_y = GROUP_ROWS) in;
$math
$functions
$body
void main() {
    int o = int(gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x);
#if defined(GRID)
#if GROUP_ROWS == 1
    tile(ivec3(gl_GlobalInvocationID.x, gl_WorkGroupID.yz));
#else
    tile(ivec3(gl_GlobalInvocationID.xy, gl_WorkGroupID.z));
#endif
#elif defined(TILE)
    if (o < O_tiles) tile(o);
#elif defined(STRIP)
    int first = o * TEXELS, count = min(TEXELS, (O_size + 3) / 4 - first);
    if (count <= 0) return;
    O_VECTOR result[TEXELS];
    strip(first, result);
    for (int k = 0; k < count; ++k) O_data[first + k] = result[k];
#elif defined(TEXEL)
    if (o < (O_size + 3) / 4) O_data[o] = texel(o);
#else
    if (o < O_size) O_data[o] = element(o);
#endif
}
