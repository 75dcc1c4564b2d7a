//@ input B
//@ input I
//@ input V
//@ input K
//@ input F
//@ input W texels
//@ param int boxes
//@ param int classes
//@ param int picks
//@ param int centered
//@ param int bounded
//@ param int first
//@ unit texel
//@ long
// Non-maximum suppression of candidates in the order I of their scores, a row for each class of each batch, in blocks.
// START: whether each box is a candidate. DECIDE: in the block from `first` on, which candidates no better one of the
// block overlaps (three words of bits), and how many are kept in this block and all before (the fourth word). THIN: the
// kept candidates of the block, and the candidates behind it that none of these overlaps. After `picks` kept candidates
// nothing else is examined.
vec4 box(int row, int j) {
    int at = (row / classes * boxes + int(I(row * boxes + j))) * 4;
    vec2 a = vec2(B(at), B(at + 1)), b = vec2(B(at + 2), B(at + 3));
    return centered == 1 ? vec4(a - b / 2.0, a + b / 2.0) : vec4(min(a, b), max(a, b));
}
//@ include overlap
bool overlap(vec4 a, vec4 b) { return overlap(a, b, bounded == 1 ? V(0) : 0.0); }
#if PART == DECIDE
ivec4 texel(int row) {
    ivec4 words = ivec4(0, 0, 0, first > 0 ? W_texel(row).w : 0);
    if (words.w >= picks) return words;
    vec4 kept[BLOCK];
    int count = 0;
    for (int j = 0; j < min(BLOCK, boxes - first); ++j) {
        if (int(F(row * boxes + first + j)) == 0) continue;
        vec4 candidate = box(row, first + j);
        bool stays = true;
        for (int k = 0; k < count && stays; ++k) stays = !overlap(kept[k], candidate);
        if (!stays) continue;
        kept[count] = candidate;
        ++count;
        words[j >> 5] |= 1 << (j & 31);
    }
    words.w += count;
    return words;
}
#else
int element(int o) {
    int row = o / boxes, j = o - row * boxes;
#if PART == START
    return is_nan(K(row * boxes + int(I(o)))) ? 0 : 1;
#else
    int flag = int(F(o));
    if (flag == 0 || j < first) return flag;
    ivec4 words = W_texel(row);
    if (j < first + BLOCK) return words[(j - first) >> 5] >> ((j - first) & 31) & 1;
    if (words.w >= picks) return 0;
    vec4 candidate = box(row, j);
    for (int w = 0; w < 3; ++w) {
        int bits = words[w];
        for (int k = 0; bits != 0; ++k, bits = bits >> 1 & 0x7fffffff)
            if ((bits & 1) == 1 && overlap(box(row, first + w * 32 + k), candidate)) return 0;
    }
    return 1;
#endif
}
ivec4 texel(int t) {
    ivec4 flags = ivec4(0);
    for (int k = 0; k < 4; ++k)
        if (t * 4 + k < O_size) flags[k] = element(t * 4 + k);
    return flags;
}
#endif
