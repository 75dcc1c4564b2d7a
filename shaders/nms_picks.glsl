//@ input S
//@ input M texels
//@ param int boxes
//@ param int picks
//@ param int words
//@ param float least
//@ long
// Pick number o of a row: the box that no pick before it overlaps, of at most 1,024 boxes in order of their scores. M has
// the overlaps as bits. -1 if there are fewer.
int element(int o) {
    int batch = o / picks * boxes, left = o % picks;
    ivec4 picked[8];
    for (int w = 0; w < 8; ++w) picked[w] = ivec4(0);
    for (int i = 0; i < boxes; ++i) {
        if (!(S(batch + i) > least)) continue;
        ivec4 met = ivec4(0);
        for (int w = 0; w < words; ++w) met |= picked[w] & M_texel((batch + i) * words + w);
        if (met != ivec4(0)) continue;
        if (left == 0) return i;
        --left;
        picked[i >> 7][i >> 5 & 3] |= 1 << (i & 31);
    }
    return -1;
}
