//@ unit element, texel if TOGETHER, texel if PLANAR, strip if ONE_ITEM
//@ input R
//@ texture T
//@ param ivec2 texture_size
//@ param int layer
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
//@ param float lowest
//@ include texels
//@ include srgb
//@ include picture
//@ include mixed
//@ include region
// An element samples the texture within the region of its item.
Region region;
void enter(int item) { region = region_of(min(item, items - 1)); } // a strip may end beyond the last
vec4 color_at(ivec4 place) {
#ifndef ONE_ITEM
    enter(place.w);
#endif
    vec2 at = within(region, (vec2(place.xy) + 0.5) / vec2(width, height));
    if (flipped == 1) at.y = float(texture_size.y) - at.y;
#ifdef NEAREST
    return texel_of(clamp_to_edge(ivec2(floor(at)), texture_size), 0);
#else
    return mixed(at, 0, texture_size);
#endif
}
