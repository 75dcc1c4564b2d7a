//@ texture T
//@ param ivec2 texture_size
//@ param int layer
//@ param vec2 origin
//@ param vec2 scale
//@ param int resample
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
//@ param ivec4 steps
//@ param int color_conversion
//@ param float lowest
//@ include texels
//@ include srgb
//@ include picture
//@ include nearest
//@ include warp
//@ include mixed
// A tensor element samples the texture at the centre of its pixel: the nearest texel, a mix of four, or such mixes on
// two levels of its mipmap. Outside the box lies the letterbox. The element is (value - mean) * factor.
vec4 mixed_on(int lod, vec2 at) {
    ivec2 size = max(texture_size >> lod, ivec2(1));
    return mixed(at * vec2(size) / vec2(texture_size), lod, size);
}
O_TYPE element(int o) {
    ivec3 p = place_of(o);
    if (!in_box(p)) return element_of(padding, p.z);
    if (resample == 0 && warped == 0) {
        ivec2 near = clamp_to_edge(nearest_of(p.xy - box.xy), texture_size);
        return element_of(texel_of(flipped == 1 ? ivec2(near.x, texture_size.y - 1 - near.y) : near, 0), p.z);
    }
    vec2 at = warped == 1 ? warp(vec2(p.xy) + 0.5) : origin + (vec2(p.xy) + 0.5) * scale;
    if (resample == 0) return element_of(texel_of(clamp_to_edge(ivec2(floor(at)), texture_size), 0), p.z);
    int lod = int(level);
    vec4 color = mixed_on(lod, at);
    if (resample == 2 && level > float(lod)) color = mix(color, mixed_on(lod + 1, at), level - float(lod));
    return element_of(color, p.z);
}
