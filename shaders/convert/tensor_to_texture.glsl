//@ input X
//@ param vec2 origin
//@ param vec2 scale
//@ param ivec4 box
//@ param ivec4 swizzle
//@ param vec4 mean
//@ param vec4 factor
//@ param int first
//@ param int channels
//@ param ivec4 steps
//@ param vec4 blank
//@ param int smooth_
//@ param int color_conversion
//@ param float lowest
//@ param float step_
//@ param ivec2 corner
//@ param ivec4 near_across
//@ param ivec4 near_down
//@ param ivec2 near_parts
//@ param int warped
//@ param vec4 warp_across
//@ param vec4 warp_down
//@ param vec4 warp_behind
//@ include srgb
//@ include nearest
//@ include warp
// A pixel samples the tensor's box at the pixel's centre. Each channel is value * factor + mean. A channel that the
// tensor lacks is blank: alpha is 1 then.
float at_(int c, ivec2 p) {
    p = box.xy + clamp_to_edge(p - box.xy, box.zw);
    return (float(X(first + p.x * steps.x + p.y * steps.y + c * steps.z)) - lowest) * step_;
}
vec4 color(ivec2 pixel) {
    vec2 at = (vec2(pixel) + 0.5 - origin) * scale;
    ivec2 near = box.xy + nearest_of(pixel - corner);
    if (warped == 1) {
        at = warp(vec2(pixel) + 0.5 - origin);
        if (!(all(greaterThanEqual(at, vec2(box.xy))) && all(lessThan(at, vec2(box.xy + box.zw))))) discard;
        near = ivec2(floor(at));
    }
    ivec2 low = ivec2(floor(at - 0.5));
    vec2 part = at - 0.5 - floor(at - 0.5);
    vec4 result = blank;
    for (int k = 0; k < 4; ++k) {
        int c = swizzle[k];
        if (c < 0 || c >= channels) continue;
        float value = smooth_ == 1
            ? mix(mix(at_(c, low), at_(c, low + ivec2(1, 0)), part.x),
                  mix(at_(c, low + ivec2(0, 1)), at_(c, low + ivec2(1, 1)), part.x), part.y)
            : at_(c, near);
        value = value * factor[k] + mean[k];
        result[k] = k < 3 ? converted(value, color_conversion) : value;
    }
    return result;
}
