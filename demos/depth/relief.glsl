#version 330
// The picture as a relief, seen by an eye that sways, and lit by a lamp within it. Tops are in first rows.
//
// The relief is x, y and inverse depth. Projection maps planes of the world to planes there, so a flat floor stays flat.
uniform sampler2D picture;
uniform sampler2D nearness;  // 1 near, 0 far
uniform vec2 size;
uniform vec4 box;  // left, top, width, height in pixels from the top left corner
uniform vec3 lamp;  // x, y in 0..1 of the picture, and nearness
uniform vec2 eye;  // how far the nearest moves, in parts of the picture
uniform float shown;  // 0 the relief, 1 the depth
uniform vec4 card_at;
out vec4 color;

const float DEEP = 0.75;  // of the relief, in heights of the picture
const float PIVOT = 0.4;  // the nearness that does not move
const int SIGHT = 24, SHADOW = 28;
const vec3 FIRE = vec3(1.0, 0.78, 0.50), NIGHT = vec3(0.13, 0.16, 0.25);

float height(vec2 at) { return textureLod(nearness, at, 0.0).r; }

vec3 place(vec2 at, float near) { return vec3((at.x - 0.5) * box.z / box.w, 0.5 - at.y, near * DEEP); }

vec2 met(vec2 at) {  // where the line of sight meets the relief: from the front, by steps, and then between two of them
    float before = 1.0, over = 1.0 - height(at + eye * (1.0 - PIVOT));
    for (int i = 1; i <= SIGHT; i++) {
        float near = 1.0 - float(i) / float(SIGHT), above = near - height(at + eye * (near - PIVOT));
        if (above <= 0.0) {
            float share = over > 0.0 ? over / max(over - above, 1e-5) : 0.0;
            return at + eye * (mix(before, near, share) - PIVOT);
        }
        before = near;
        over = above;
    }
    return at - eye * PIVOT;
}

vec3 normal(vec2 at) {
    vec2 step_ = 1.5 / vec2(textureSize(nearness, 0));
    float across = height(at + vec2(step_.x, 0.0)) - height(at - vec2(step_.x, 0.0));
    float down = height(at + vec2(0.0, step_.y)) - height(at - vec2(0.0, step_.y));
    return normalize(vec3(-across * DEEP / (2.0 * step_.x * box.z / box.w), down * DEEP / (2.0 * step_.y), 1.0));
}

float lit(vec2 at, float near, float grain) {  // the share of the lamp that nothing hides
    float hidden = 0.0;
    for (int i = 0; i < SHADOW; i++) {
        float way = (float(i) + grain) / float(SHADOW);
        vec2 there = mix(at, lamp.xy, way);
        float over = height(there) - mix(near, lamp.z, way) - 0.025;
        hidden = max(hidden, over / (0.03 + 0.12 * way));
    }
    return 1.0 - clamp(hidden, 0.0, 1.0);
}

vec3 ramp(float near) {
    vec3 low = mix(vec3(0.05, 0.05, 0.20), vec3(0.42, 0.12, 0.47), smoothstep(0.0, 0.35, near));
    vec3 high = mix(vec3(0.93, 0.42, 0.33), vec3(1.0, 0.95, 0.70), smoothstep(0.6, 1.0, near));
    return mix(low, high, smoothstep(0.2, 0.75, near));
}

vec3 relief(vec2 at) {
    vec2 there = met(at);
    float near = height(there), grain = fract(52.9829189 * fract(dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715))));
    vec3 point = place(there, near), source = place(lamp.xy, lamp.z), toward = source - point;
    float square = dot(toward, toward);
    vec3 way = toward * inversesqrt(square), facing = normal(there);
    float shine = pow(max(dot(facing, normalize(way + vec3(0.0, 0.0, 1.0))), 0.0), 32.0);
    float reached = lit(there, near, grain) / (1.0 + 9.0 * square);
    vec3 base = textureLod(picture, there, 0.0).rgb;
    base *= base;  // roughly linear light
    vec3 light = NIGHT * (0.55 + 0.45 * facing.z) + FIRE * 6.5 * reached * max(dot(facing, way) * 0.85 + 0.15, 0.0);
    vec3 seen = base * light + FIRE * 0.10 * shine * reached;
    vec2 away = vec2((at.x - lamp.x) * box.z / box.w, at.y - lamp.y);
    float behind = smoothstep(-0.04, 0.02, height(at) - lamp.z), spread = dot(away, away);
    seen += FIRE * (1.0 - behind) * (1.6 * exp(-spread * 4000.0) + 0.14 * exp(-spread * 160.0));
    return sqrt(1.0 - exp(-1.5 * seen));
}

void main() {
    vec2 pixel = vec2(gl_FragCoord.x, size.y - gl_FragCoord.y), at = (pixel - box.xy) / box.zw;
    vec3 seen = vec3(0.055, 0.06, 0.08);
    if (all(greaterThanEqual(at, vec2(0.0))) && all(lessThan(at, vec2(1.0))))
        seen = mix(relief(at), ramp(height(at)), shown);
    vec2 half_size = card_at.zw / 2.0, away = abs(pixel - card_at.xy - half_size) - half_size + 10.0;
    float edge = length(max(away, 0.0)) + min(max(away.x, away.y), 0.0) - 10.0;
    seen = mix(seen, vec3(1.0), clamp(2.5 - edge, 0.0, 1.0) * 0.9);
    vec2 within = (pixel - card_at.xy) / card_at.zw;
    vec3 card = mix(ramp(height(within)), textureLod(picture, within, 0.0).rgb, shown);
    color = vec4(mix(seen, card, clamp(0.5 - edge, 0.0, 1.0)), 1.0);
}
