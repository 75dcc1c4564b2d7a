//@ input X elements, texels if WHOLE
//@ input W texels
//@ input S texels
//@ input Z texels if ZEROS
//@ input C
//@ param int rows
//@ param int columns
//@ param int depth
//@ param int block
//@ param int words
//@ param int blocks
//@ param int zero_words
//@ param int has_bias
//@ unit strip
// A strip of one row of a product with packed weights: its elements share those of X. With the columns of two panels, it
// lies in one row.
//@ include packed
//@ include four
//@ include repeat
#define NEXT_PANEL(j) ((j) < 4 ? 0 : next)
#define ADD(j, p, none) part[j] += x * (codes(word[j], p) - zero[j]);
#ifdef WHOLE
#define PLACE(p, none, nothing) if (((p) & 3) == 0) v = X_texel(a++); x = v[(p) & 3]; REPEAT2(TEXELS, ADD, p, none)
#else
#define PLACE(p, none, nothing) x = X(a++); REPEAT2(TEXELS, ADD, p, none)
#endif
void strip(int first, out vec4 result[TEXELS]) {
    int row = first * 4 / columns, column = first * 4 - row * columns, whole = depth / EACH, k = 0;
    int a = row * depth, at = texel_of(column, words);
    // the second panel is the first one again if the row has no other
    int further = column + 16 < columns ? 16 : 0, next = further / 4 * words;
    vec4 part[TEXELS], zero[TEXELS], v;
    ivec4 word[TEXELS];
    float x;
    for (int j = 0; j < TEXELS; ++j) result[j] = part[j] = vec4(0.0);
    for (int index = 0; k < words; ++index) {
        int stop = end_of(index);
        for (int j = 0; j < TEXELS; ++j) zero[j] = zeros_of(column + (j < 4 ? 0 : further) + 4 * (j & 3), index);
#ifdef WHOLE
        a >>= 2; // a texel in this loop
#endif
        for (; k < min(stop, whole); ++k) {
            for (int j = 0; j < TEXELS; ++j) word[j] = W_texel(at + NEXT_PANEL(j) + (j & 3) + 4 * k);
            REPEAT(EACH, PLACE, none, none)
        }
#ifdef WHOLE
        a <<= 2;
#endif
        if (k < stop) {
            for (int j = 0; j < TEXELS; ++j) word[j] = W_texel(at + NEXT_PANEL(j) + (j & 3) + 4 * k);
            for (int p = 0; p < depth - whole * EACH; ++p) {
                x = X(a++);
                for (int j = 0; j < TEXELS; ++j) ADD(j, p, none)
            }
            ++k;
        }
        for (int j = 0; j < TEXELS; ++j) {
            result[j] += scales_of(column + (j < 4 ? 0 : further) + 4 * (j & 3), index) * part[j];
            part[j] = vec4(0.0);
        }
    }
    for (int j = 0; j < TEXELS; ++j) result[j] = epilogue_of_four(result[j] + bias_of(column + 4 * j));
}
