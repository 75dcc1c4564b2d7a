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
// A pixel samples the tensor's box at the pixel's centre (SMOOTH), or takes the nearest element. Each channel is
// value * factor + mean; CONVERTS changes its brightness. A channel that the tensor lacks is blank, as alpha is if OPAQUE:
// it is 1 then.
vec2 at; // in the tensor
ivec2 near;
float at_(int c, ivec2 p) {
    p = box.xy + clamp_to_edge(p - box.xy, box.zw);
    return (float(X(first + p.x * steps.x + p.y * steps.y + c * steps.z)) - lowest) * step_;
}
float channel(int k, int c) {
    if (c < 0 || c >= channels) return blank[k];
#ifdef SMOOTH
    ivec2 low = ivec2(floor(at - 0.5));
    vec2 part = at - 0.5 - floor(at - 0.5);
    float value = mix(mix(at_(c, low), at_(c, low + ivec2(1, 0)), part.x),
                      mix(at_(c, low + ivec2(0, 1)), at_(c, low + ivec2(1, 1)), part.x), part.y);
#else
    float value = at_(c, near);
#endif
    value = value * factor[k] + mean[k];
#ifdef CONVERTS
    if (k < 3) value = converted(value, CONVERTS);
#endif
    return value;
}
vec4 color(ivec2 pixel) {
    at = (vec2(pixel) + 0.5 - origin) * scale;
    if (warped == 1) {
        at = warp(vec2(pixel) + 0.5 - origin);
        if (!(all(greaterThanEqual(at, vec2(box.xy))) && all(lessThan(at, vec2(box.xy + box.zw))))) discard;
    }
#ifndef SMOOTH
    near = warped == 1 ? ivec2(floor(at)) : box.xy + nearest_of(pixel - corner);
#endif
#ifdef OPAQUE
    float alpha = blank.w;
#else
    float alpha = channel(3, swizzle.w);
#endif
    return vec4(channel(0, swizzle.x), channel(1, swizzle.y), channel(2, swizzle.z), alpha);
}
