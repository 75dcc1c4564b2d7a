#version 330
// One fragment computes one texel of four output elements.
$declarations
$math
$functions
$body
void main() {
    ivec2 at = ivec2(gl_FragCoord.xy);
    int t = (at.y << TEXTURE_SHIFT) + at.x;
#ifdef TEXEL
    O_texel = texel(t);
#else
    O_VECTOR result = O_VECTOR(0);
    for (int k = 0; k < 4; ++k)
        if (t * 4 + k < O_size) result[k] = element(t * 4 + k);
    O_texel = result;
#endif
}
