//@ input X
//@ input N elements if COUNTED
//@ param ivec2 key
//@ param vec2 numbers
// Random numbers as layers/random.py defines them. If each run draws new numbers (COUNTED), N is the number of the run.
uvec2 mix_(uvec2 v, int bits) {
    v.x += v.y;
    v.y = (v.y << uint(bits) | v.y >> uint(32 - bits)) ^ v.x;
    return v;
}
uvec2 threefry(uvec2 v) {
    uint a = uint(key.x), b = uint(key.y);
#ifdef COUNTED
    b += uint(int(N(0)));
#endif
    uint c = a ^ b ^ 0x1BD11BDAu;
    v += uvec2(a, b);
    v = mix_(mix_(mix_(mix_(v, 13), 15), 26), 6) + uvec2(b, c + 1u);
    v = mix_(mix_(mix_(mix_(v, 17), 29), 16), 24) + uvec2(c, a + 2u);
    v = mix_(mix_(mix_(mix_(v, 13), 15), 26), 6) + uvec2(a, b + 3u);
    v = mix_(mix_(mix_(mix_(v, 17), 29), 16), 24) + uvec2(b, c + 4u);
    return mix_(mix_(mix_(mix_(v, 13), 15), 26), 6) + uvec2(c, a + 5u);
}
float normal(vec2 unit) { return sqrt(-2.0 * log1p(-unit.x)) * cos(6.283185307 * unit.y); }
O_TYPE element(int o) {
    vec2 unit = vec2(threefry(uvec2(uint(o), 0u)) >> 8u) * (1.0 / 16777216.0);
    return O_TYPE(DRAWN);
}
