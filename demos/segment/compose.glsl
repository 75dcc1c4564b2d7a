#version 330
// People before a picture, blur or a colour; and in a corner what the network saw, and its mask. Tops are in first rows.
uniform sampler2D picture;
uniform sampler2D mask;
uniform sampler2D behind;
uniform sampler2D soft;
uniform int ground;  // 0 picture, 1 blur, 2 colour
uniform vec3 plain;
uniform vec2 size;
uniform vec2 behind_size;
uniform vec4 box;  // left, top, width, height in pixels from the top left corner
uniform vec4 seen_at;
uniform vec4 mask_at;
out vec4 color;

const int TAPS = 24;

bool within(vec2 at) { return all(greaterThanEqual(at, vec2(0.0))) && all(lessThan(at, vec2(1.0))); }

vec3 blurred(vec2 at) {  // a disc of taps, as an open lens has it
    vec4 sum = vec4(0.0);
    for (int tap = 0; tap < TAPS; tap++) {
        float radius = sqrt((float(tap) + 0.5) / float(TAPS)), angle = float(tap) * 2.399963;
        vec2 away = radius * vec2(cos(angle), sin(angle)) * vec2(0.022 * box.w / box.z, 0.022);
        sum += textureLod(soft, at + away, 1.5);
    }
    return sum.rgb / sum.a;
}

vec3 ground_at(vec2 at) {
    if (ground == 1) return blurred(at);
    if (ground == 2) return plain * (1.12 - 0.35 * length(at - vec2(0.5, 0.4)));
    vec2 part = vec2(box.z / box.w * behind_size.y / behind_size.x, 1.0);
    return texture(behind, 0.5 + (at - 0.5) * part / max(part.x, 1.0)).rgb;  // it covers all, and keeps its shape
}

vec3 card(sampler2D shown, vec4 place, vec2 at, vec3 under, bool is_mask) {
    vec2 half_size = place.zw / 2.0, away = abs(at - place.xy - half_size) - half_size + 10.0;
    float edge = length(max(away, 0.0)) + min(max(away.x, away.y), 0.0) - 10.0;
    vec4 texel = texture(shown, (at - place.xy) / place.zw);
    vec3 inside = is_mask ? mix(vec3(0.06, 0.07, 0.12), vec3(1.0, 0.95, 0.85), texel.r) : texel.rgb;
    under = mix(under, vec3(1.0), clamp(2.5 - edge, 0.0, 1.0) * 0.9);
    return mix(under, inside, clamp(0.5 - edge, 0.0, 1.0));
}

void main() {
    vec2 place = vec2(gl_FragCoord.x, size.y - gl_FragCoord.y);
    vec2 at = (place - box.xy) / box.zw;
    vec3 shown = vec3(0.055, 0.06, 0.08);
    if (within(at)) {
        float person = smoothstep(0.35, 0.8, texture(mask, at).r);
        shown = mix(ground_at(at), texture(picture, at).rgb, person);
    }
    shown = card(picture, seen_at, place, shown, false);
    color = vec4(card(mask, mask_at, place, shown, true), 1.0);
}
