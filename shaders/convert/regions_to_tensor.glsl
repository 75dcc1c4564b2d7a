//@ input R
//@ texture T
//@ param ivec2 texture_size
//@ param int layer
//@ param int resample
//@ param int flipped
//@ param int numbers
//@ param ivec4 box
//@ param vec4 padding
//@ param ivec4 swizzle
//@ param vec4 mean
//@ param vec4 factor
//@ param int channels
//@ param int height
//@ param int width
//@ param int items
//@ param ivec4 steps
//@ param int color_conversion
//@ param float lowest
//@ include texels
//@ include srgb
//@ include picture
//@ include mixed
// An element samples the texture within the region of its item: five numbers (center, size, angle) or the six of an
// affine matrix from the unit square.
vec2 within(int item, vec2 unit) {
    int first = item * numbers;
    if (numbers == 6) {
        vec3 given = vec3(unit, 1.0);
        return vec2(dot(vec3(R(first), R(first + 1), R(first + 2)), given),
                    dot(vec3(R(first + 3), R(first + 4), R(first + 5)), given));
    }
    vec2 side = vec2(R(first + 2), R(first + 3)) * (unit - 0.5);
    float c = cos(float(R(first + 4))), s = sin(float(R(first + 4)));
    return vec2(R(first), R(first + 1)) + vec2(c * side.x - s * side.y, s * side.x + c * side.y);
}
O_TYPE element(int o) {
    ivec3 p = place_of(o);
    vec2 at = within(o / steps.w % items, (vec2(p.xy) + 0.5) / vec2(width, height));
    if (flipped == 1) at.y = float(texture_size.y) - at.y;
    vec4 color = resample == 0 ? texel_of(clamp_to_edge(ivec2(floor(at)), texture_size), 0)
                               : mixed(at, 0, texture_size);
    return element_of(color, p.z);
}
