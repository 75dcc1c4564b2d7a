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
//@ include region
// An element samples the texture within the region of its item.
O_TYPE element(int o) {
    ivec3 p = place_of(o);
    vec2 at = within(o / steps.w % items, (vec2(p.xy) + 0.5) / vec2(width, height));
    if (flipped == 1) at.y = float(texture_size.y) - at.y;
    vec4 color = resample == 0 ? texel_of(clamp_to_edge(ivec2(floor(at)), texture_size), 0)
                               : mixed(at, 0, texture_size);
    return element_of(color, p.z);
}
