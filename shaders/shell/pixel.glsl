#version 330
// One fragment computes TEXELS consecutive texels of four output elements, and writes each to a sheet of its own. If the
// body's loops are long (LONG), it computes one texel, on the sheet that the geometry shader chose. With APPENDS the first
// O_tiles texels stay as they are.
$declarations
$math
$functions
$body
#if !defined(TEXEL) && !defined(STRIP)
O_VECTOR texel(int t) {
    O_VECTOR result = O_VECTOR(0);
    for (int k = 0; k < 4; ++k)
        if (t * 4 + k < O_size) result[k] = element(t * 4 + k);
    return result;
}
#endif
#ifdef LONG
flat in int sheet;
#endif
void main() {
    int first = FIRST_TEXEL(ivec2(gl_FragCoord.xy)), end = (O_size + 3) / 4;
#ifdef LONG
#ifdef APPENDS
    if (first + sheet < O_tiles) discard;
#endif
    O_texels[0] = first + sheet < end ? texel(first + sheet) : O_VECTOR(0);
#ifdef O_HALVES
    O_texels[0] = nearest_halves(O_texels[0]);
#endif
#else
    O_VECTOR result[TEXELS];
#ifdef STRIP
    if (first < end) strip(first, result);
#else
    end = min(end, first + TEXELS);
    for (int t = first; t < end; ++t) result[t - first] = texel(t); // compilers that unroll loops leave this one alone
#endif
#ifdef O_HALVES
    for (int k = 0; k < TEXELS; ++k) result[k] = nearest_halves(result[k]);
#endif
    O_texels = result;
#endif
}
