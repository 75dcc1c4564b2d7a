#version 430
// One invocation an output element, or a texel of four where the body defines texel().
layout(local_size_x = 64) in;
$declarations
$math
$functions
$body
void main() {
    int o = int(gl_GlobalInvocationID.x + gl_GlobalInvocationID.y * gl_NumWorkGroups.x * gl_WorkGroupSize.x);
#ifdef TEXEL
    if (o < (O_size + 3) / 4) O_data[o] = texel(o);
#else
    if (o < O_size) O_data[o] = element(o);
#endif
}
