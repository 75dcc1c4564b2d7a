//@ texture T
//@ param ivec2 texture_size
//@ param vec2 origin
//@ param vec2 scale
//@ param ivec4 swizzle
//@ param vec4 mean
//@ param vec4 factor
//@ param int channels
//@ param int height
//@ param int width
//@ param int channels_last
//@ param int smooth_
// A tensor element samples the texture at the centre of its pixel. It is (value - mean) * factor.
vec4 texel_at(ivec2 at) { return texelFetch(T, clamp_to_edge(at, texture_size), 0); }
float element(int o) {
    int c, x, y;
    if (channels_last == 1) { c = o % channels; x = o / channels % width; y = o / channels / width % height; }
    else { x = o % width; y = o / width % height; c = o / width / height % channels; }
    vec2 at = origin + (vec2(x, y) + 0.5) * scale;
    vec4 color;
    if (smooth_ == 1) {
        at -= 0.5;
        ivec2 low = ivec2(floor(at));
        vec2 part = at - floor(at);
        color = mix(mix(texel_at(low), texel_at(low + ivec2(1, 0)), part.x),
                    mix(texel_at(low + ivec2(0, 1)), texel_at(low + ivec2(1, 1)), part.x), part.y);
    } else color = texel_at(ivec2(floor(at)));
    return (color[swizzle[c]] - mean[c]) * factor[c];
}
