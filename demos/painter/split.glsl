#version 330
// Before | after, with a line between them and a label on top. All textures have the picture's top in their first row,
// and none has mipmaps, so that sampling them beyond a branch is fine.
uniform sampler2D before;
uniform sampler2D after;
uniform sampler2D label;
uniform vec4 window;   // the part of `before` that is shown: x, y, width, height, in 0..1
uniform vec4 area;     // where it is shown: x, y, width, height, in pixels from the top left
uniform float edge;    // how much of the picture is cut off at each side
uniform vec3 rule;     // the line: pixels from the area's left, half its width, the width of its shadow
uniform vec2 corner;   // of the label, in pixels from the area's top left
uniform float height;  // of all that is drawn into, in pixels
out vec4 color;

// Catmull-Rom in five bilinear samples, its corners left out: enlarged by linear filtering alone, brush strokes blur.
// Source: J. Jimenez, Filmic SMAA, SIGGRAPH 2016.
vec3 crisp(sampler2D picture, vec2 at) {
    vec2 size = vec2(textureSize(picture, 0));
    vec2 center = floor(at * size - 0.5) + 0.5;
    vec2 f = at * size - center;
    vec2 w0 = f * (-0.5 + f * (1.0 - 0.5 * f));
    vec2 w2 = f * (0.5 + f * (2.0 - 1.5 * f));
    vec2 w3 = f * f * (-0.5 + 0.5 * f);
    vec2 w12 = 1.0 - w0 - w3;
    vec2 low = (center - 1.0) / size, middle = (center + w2 / w12) / size, high = (center + 2.0) / size;
    vec4 sum = vec4(texture(picture, middle).rgb, 1.0) * w12.x * w12.y
             + vec4(texture(picture, vec2(low.x, middle.y)).rgb, 1.0) * w0.x * w12.y
             + vec4(texture(picture, vec2(high.x, middle.y)).rgb, 1.0) * w3.x * w12.y
             + vec4(texture(picture, vec2(middle.x, low.y)).rgb, 1.0) * w12.x * w0.y
             + vec4(texture(picture, vec2(middle.x, high.y)).rgb, 1.0) * w12.x * w3.y;
    return clamp(sum.rgb / sum.a, 0.0, 1.0);
}

void main() {
    vec2 pixel = vec2(gl_FragCoord.x, height - gl_FragCoord.y) - area.xy;
    if (any(lessThan(pixel, vec2(0.0))) || any(greaterThan(pixel, area.zw))) discard;
    vec2 at = mix(vec2(edge), vec2(1.0 - edge), pixel / area.zw);
    vec3 shown = pixel.x < rule.x ? texture(before, window.xy + at * window.zw).rgb : crisp(after, at);
    float beside = abs(pixel.x - rule.x) - rule.y;
    shown *= 1.0 - 0.45 * exp(-max(beside, 0.0) / rule.z);
    shown = mix(shown, vec3(1.0), clamp(0.5 - beside, 0.0, 1.0));
    ivec2 on_label = ivec2(floor(pixel - corner));
    if (all(greaterThanEqual(on_label, ivec2(0))) && all(lessThan(on_label, textureSize(label, 0)))) {
        vec4 ink = texelFetch(label, on_label, 0);
        shown = mix(shown, ink.rgb, ink.a);
    }
    color = vec4(shown, 1.0);
}
