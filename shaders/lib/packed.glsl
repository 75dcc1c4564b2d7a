// Weights, EACH in a word, become floats as they are read. layers/packed.py describes their order. With ZEROS they have
// zero points. With WHOLE the rows of X are whole texels.
#define BITS (32 / EACH)
vec4 codes(ivec4 word, int place) { return vec4(word << (32 - BITS * (place + 1)) >> (32 - BITS)); }
// The texel of the first of `count` rows for four columns; the next row is four texels further.
int texel_of(int column, int count) { return (column >> 4) * count * 4 + ((column >> 2) & 3); }
int block_of(int word) { return word * EACH / block; }
// The word after those of a block.
int end_of(int index) { return (min((index + 1) * block, depth) + EACH - 1) / EACH; }
vec4 scales_of(int column, int index) { return S_texel(texel_of(column, blocks) + 4 * index); }
vec4 zeros_of(int column, int index) {
#ifdef ZEROS
    return codes(Z_texel(texel_of(column, zero_words) + 4 * (index / EACH)), index % EACH);
#else
    return vec4(0.0);
#endif
}
vec4 bias_of(int column) {
    return has_bias == 1 ? C_at(min(column + ivec4(0, 1, 2, 3), ivec4(columns - 1))) : vec4(0.0);
}
