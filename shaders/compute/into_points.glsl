//@ input X texels
//@ param ivec2 size
//@ param ivec2 tiles
//@ param ivec2 begin
//@ param int planes
//@ unit grid
// Winograd's convolution, F(4 x 4, 3 x 3): an invocation takes six rows and columns of a block of channels to the 36
// points of a tile. Along a dim the points are 0, NEAR_POINT, -NEAR_POINT, FAR_POINT, -FAR_POINT and infinity.
void into(inout vec4 a, inout vec4 b, inout vec4 c, inout vec4 d, inout vec4 e, inout vec4 f) {
    const float near = NEAR_POINT * NEAR_POINT, far = FAR_POINT * FAR_POINT;
    vec4 even_near = e - far * c, odd_near = NEAR_POINT * (d - far * b);
    vec4 even_far = e - near * c, odd_far = FAR_POINT * (d - near * b);
    a = near * far * a - (near + far) * c + e;
    f = near * far * b - (near + far) * d + f;
    b = even_near + odd_near;
    c = even_near - odd_near;
    d = even_far + odd_far;
    e = even_far - odd_far;
}
void tile(ivec3 at) {
    int count = tiles.x * tiles.y;
    if (at.x >= count || at.y >= planes) return;
    int row = at.x / tiles.y, x0 = (at.x - row * tiles.y) * 4 - begin.y, y0 = row * 4 - begin.x;
    int plane = (at.z * planes + at.y) * size.x * size.y;
    vec4 v[36];
    for (int j = 0; j < 6; ++j) {
        vec4 u[6];
        int x = x0 + j;
        for (int i = 0; i < 6; ++i) {
            int y = y0 + i;
            bool inside = uint(y) < uint(size.x) && uint(x) < uint(size.y);
            u[i] = mix(vec4(0.0), X_texel(plane + (inside ? y * size.y + x : 0)), bvec4(inside));
        }
        into(u[0], u[1], u[2], u[3], u[4], u[5]);
        for (int i = 0; i < 6; ++i) v[i * 6 + j] = u[i];
    }
    int o = (at.z * 36 * planes + at.y) * count + at.x;
    for (int i = 0; i < 6; ++i) {
        vec4 u[6];
        for (int j = 0; j < 6; ++j) u[j] = v[i * 6 + j];
        into(u[0], u[1], u[2], u[3], u[4], u[5]);
        for (int j = 0; j < 6; ++j) store(o + (i * 6 + j) * planes * count, u[j]);
    }
}
