//@ unit element, texel if TOGETHER, texel if PLANAR
//@ texture T
//@ param ivec2 texture_size
//@ param int layer
//@ param vec2 origin
//@ param vec2 scale
//@ param float level
//@ param int flipped
//@ param int warped
//@ param vec4 warp_across
//@ param vec4 warp_down
//@ param vec4 warp_behind
//@ param ivec4 near_across
//@ param ivec4 near_down
//@ param ivec2 near_parts
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
//@ include nearest
//@ include warp
//@ include mixed
// A tensor element samples the texture at the centre of its pixel: the NEAREST texel, a mix of four, or such mixes on two
// levels of its MIPMAP; by a matrix in a region that is not upright. Outside the box lies the letterbox.
vec4 mixed_on(int lod, vec2 at) {
    ivec2 size = max(texture_size >> lod, ivec2(1));
    return mixed(at * vec2(size) / vec2(texture_size), lod, size);
}
vec4 color_at(ivec4 place) {
    if (!in_box(place.xy)) return padding;
    vec2 at = warped == 1 ? warp(vec2(place.xy) + 0.5) : origin + (vec2(place.xy) + 0.5) * scale;
#if defined(NEAREST)
    ivec2 near = nearest_of(place.xy - box.xy);
    if (flipped == 1) near.y = texture_size.y - 1 - near.y;
    return texel_of(clamp_to_edge(warped == 1 ? ivec2(floor(at)) : near, texture_size), 0);
#elif defined(MIPMAP)
    int lod = int(level);
    vec4 color = mixed_on(lod, at);
    return level > float(lod) ? mix(color, mixed_on(lod + 1, at), level - float(lod)) : color;
#else
    return mixed(at, 0, texture_size);
#endif
}
