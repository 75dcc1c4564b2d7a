#version 330
// Before | after, with a line between them and a label on top. All textures have the picture's top in their first row.
uniform sampler2D before;
uniform sampler2D after;
uniform sampler2D label;
uniform vec4 window;   // the part of `before` that is shown: x, y, width, height, in 0..1
uniform vec4 area;     // where it is shown: x, y, width, height, in pixels from the top left
uniform vec3 rule;     // the line: pixels from the area's left, half its width, the width of its shadow
uniform vec2 corner;   // of the label, in pixels from the area's top left
uniform float height;  // of all that is drawn into, in pixels
out vec4 color;

// Catmull-Rom in nine bilinear samples: what is enlarged stays crisp, where linear filtering alone blurs it.
vec3 crisp(sampler2D picture, vec2 at) {
    vec2 size = vec2(textureSize(picture, 0));
    vec2 position = at * size;
    vec2 center = floor(position - 0.5) + 0.5;
    vec2 f = position - center;
    vec2 w0 = f * (-0.5 + f * (1.0 - 0.5 * f));
    vec2 w1 = 1.0 + f * f * (-2.5 + 1.5 * f);
    vec2 w3 = f * f * (-0.5 + 0.5 * f);
    vec2 w12 = 1.0 - w0 - w3;
    vec2 low = (center - 1.0) / size, high = (center + 2.0) / size;
    vec2 middle = (center + (w12 - w1) / w12) / size;
    vec3 upper = textureLod(picture, vec2(low.x, low.y), 0.0).rgb * w0.x
               + textureLod(picture, vec2(middle.x, low.y), 0.0).rgb * w12.x
               + textureLod(picture, vec2(high.x, low.y), 0.0).rgb * w3.x;
    vec3 inner = textureLod(picture, vec2(low.x, middle.y), 0.0).rgb * w0.x
               + textureLod(picture, middle, 0.0).rgb * w12.x
               + textureLod(picture, vec2(high.x, middle.y), 0.0).rgb * w3.x;
    vec3 lower = textureLod(picture, vec2(low.x, high.y), 0.0).rgb * w0.x
               + textureLod(picture, vec2(middle.x, high.y), 0.0).rgb * w12.x
               + textureLod(picture, vec2(high.x, high.y), 0.0).rgb * w3.x;
    return clamp(upper * w0.y + inner * w12.y + lower * w3.y, 0.0, 1.0);
}

void main() {
    vec2 pixel = vec2(gl_FragCoord.x, height - gl_FragCoord.y) - area.xy;
    if (any(lessThan(pixel, vec2(0.0))) || any(greaterThan(pixel, area.zw))) discard;
    vec2 at = pixel / area.zw;
    vec3 shown = pixel.x < rule.x ? crisp(before, window.xy + at * window.zw) : crisp(after, at);
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
