//@ input B texels
//@ input S
//@ input C
//@ param int boxes
//@ param int words
//@ param int labelled
//@ param float most
//@ param float least
//@ unit texel
//@ long
// Bits of box i, a row of `words` texels: bit j is 1 if box j comes before it, has its class, and overlaps it by more
// than `most`. A box that is no candidate has none.
//@ include overlap
vec4 box(int i) {
    vec4 b = B_texel(i);
    return vec4(min(b.xy, b.zw), max(b.xy, b.zw));
}
ivec4 texel(int t) {
    int i = t / words, batch = i / boxes * boxes, first = batch + t % words * 128, end = min(first + 128, i);
    ivec4 bits = ivec4(0);
    if (!(S(i) > least)) return bits;
    vec4 mine = box(i);
    for (int j = first; j < end; ++j) {
        int k = j - first;
        if (labelled == 1 && int(C(j)) != int(C(i))) continue;
        if (overlap(box(j), mine, most)) bits[k >> 5] |= 1 << (k & 31);
    }
    return bits;
}
