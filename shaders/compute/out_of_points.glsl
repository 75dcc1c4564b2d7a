//@ input X texels
//@ input B texels
//@ input A texels
//@ param ivec2 output_
//@ param ivec2 tiles
//@ param int planes
//@ param int has_bias
//@ param int addend_blocks
//@ unit grid
//@ include four
// Winograd's convolution, F(4 x 4, 3 x 3): an invocation makes four rows and columns of outputs of a block of channels
// from the products at the 36 points of a tile, which into_points.glsl names.
void out_of(inout vec4 a, inout vec4 b, inout vec4 c, inout vec4 d, vec4 e, vec4 f) {
    vec4 near = b + c, apart = NEAR_POINT * (b - c), far = d + e, wide = FAR_POINT * (d - e);
    a += near + far;
    b = apart + wide;
    c = NEAR_POINT * NEAR_POINT * near + FAR_POINT * FAR_POINT * far;
    d = NEAR_POINT * NEAR_POINT * apart + FAR_POINT * FAR_POINT * wide + f;
}
void tile(ivec3 at) {
    int count = tiles.x * tiles.y;
    if (at.x >= count || at.y >= planes) return;
    int row = at.x / tiles.y, left = (at.x - row * tiles.y) * 4, top = row * 4, area = output_.x * output_.y;
    int from = (at.z * 36 * planes + at.y) * count + at.x;
    vec4 v[24], start = has_bias == 1 ? B_texel(at.y) : vec4(0.0);
    for (int j = 0; j < 6; ++j) {
        vec4 u[6];
        for (int i = 0; i < 6; ++i) u[i] = X_texel(from + (i * 6 + j) * planes * count);
        out_of(u[0], u[1], u[2], u[3], u[4], u[5]);
        for (int i = 0; i < 4; ++i) v[i * 6 + j] = u[i];
    }
    for (int i = 0; i < 4; ++i) {
        if (top + i >= output_.x) break;
        vec4 u[6];
        for (int j = 0; j < 6; ++j) u[j] = v[i * 6 + j];
        out_of(u[0], u[1], u[2], u[3], u[4], u[5]);
        int o = (at.z * planes + at.y) * area + (top + i) * output_.y + left;
        int a = (at.z * addend_blocks + at.y) * area + (top + i) * output_.y + left;
        for (int j = 0; j < 4; ++j)
            if (left + j < output_.y) {
                vec4 value = start + u[j];
                if (at.y < addend_blocks) value += A_texel(a + j);
                store(o + j, epilogue_of_four(value));
            }
    }
}
