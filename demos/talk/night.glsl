// A lighthouse above the sea at night, in any mixture of weathers.
uniform vec2 size;
uniform float time;
uniform vec2 beam;
uniform vec4 weather;  // how much rain, snow, fog and storm there is; none is calm
out vec4 color;

const float HORIZON = 0.27;

float hash(vec2 p) { return fract(sin(dot(p, vec2(127.1, 311.7))) * 43758.5453); }

float noise(vec2 p) {
    vec2 i = floor(p), f = fract(p);
    f = f * f * (3.0 - 2.0 * f);
    return mix(mix(hash(i), hash(i + vec2(1, 0)), f.x), mix(hash(i + vec2(0, 1)), hash(i + vec2(1, 1)), f.x), f.y);
}

float clouds(vec2 p) { return 0.5 * noise(p) + 0.3 * noise(p * 2.1 + 7.0) + 0.2 * noise(p * 4.3 + 3.0); }

float flash() {  // of lightning
    float at = floor(time * 1.7), part = fract(time * 1.7);
    return weather.w * step(0.86, hash(vec2(at, 3.0))) * exp(-5.0 * part) * (0.6 + 0.4 * sin(part * 60.0));
}

vec3 sky(vec2 p, float aspect, float clear) {
    float up = (p.y - HORIZON) / (1.0 - HORIZON);
    vec3 low = mix(vec3(0.22, 0.25, 0.42), vec3(0.16, 0.17, 0.21), weather.x + weather.w);
    low = mix(low, vec3(0.40, 0.42, 0.47), max(weather.z, 0.5 * weather.y));
    vec3 shown = mix(low, vec3(0.025, 0.035, 0.09), pow(clamp(up, 0.0, 1.0), 0.6));
    vec2 cell = floor(p * 60.0), inside = fract(p * 60.0) - 0.5;
    float lot = hash(cell);
    vec2 off = 0.5 * (vec2(hash(cell + 9.0), hash(cell + 17.0)) - 0.5);
    float star = step(0.90, lot) * smoothstep(0.10, 0.0, length(inside - off)) * (0.6 + 0.4 * sin(time * 2.0 + lot * 90.0));
    shown += clear * star * vec3(0.85, 0.9, 1.0) * smoothstep(0.0, 0.3, up);
    float moon = length(p - vec2(aspect * 0.60, 0.83));
    float disc = smoothstep(0.045, 0.042, moon) * smoothstep(0.030, 0.040, length(p - vec2(aspect * 0.60 + 0.018, 0.84)));
    shown += clear * (disc * vec3(1.0, 0.96, 0.84) + 0.10 * exp(-9.0 * moon) * vec3(0.7, 0.75, 0.9));
    float dull = clamp(weather.x + weather.w + 0.6 * weather.y, 0.0, 1.0);
    if (dull < 0.01) return shown;
    float cover = clouds(vec2(p.x * 1.6 + time * (0.02 + 0.14 * weather.w), p.y * 3.2));
    shown = mix(shown, vec3(0.085, 0.095, 0.13) + 0.12 * cover, dull * smoothstep(0.35, 0.75, cover) * 0.85);
    return shown + flash() * vec3(0.55, 0.58, 0.75) * (0.4 + 0.6 * cover);
}

vec3 sea(vec2 p, float aspect, float clear, vec3 shown) {  // before the sky that is shown
    for (int row = 6; row >= 0; row--) {  // from the shore to the horizon; the first wave hides all others
        float near = float(row) / 6.0, speed = 0.25 + 0.5 * near;
        float rough = (0.003 + 0.010 * near) * (1.0 + 2.8 * weather.w);
        float x = p.x * mix(26.0, 7.0, near) + float(row) * 19.7;
        float wave = sin(x + time * speed * 2.0) + 0.5 * sin(x * 2.3 - time * speed * 1.3) + 0.7 * noise(vec2(x * 0.8 - time * speed, float(row)));
        float top = HORIZON * (1.0 - 0.96 * near * near - 0.02) + rough * wave;
        float under = top - p.y;
        if (under < 0.0) continue;
        shown = mix(vec3(0.085, 0.115, 0.19), vec3(0.022, 0.035, 0.075), near) + weather.z * (1.0 - near) * 0.15;
        float crest = exp(-under * mix(260.0, 90.0, near));
        shown += crest * (vec3(0.07, 0.09, 0.13) + weather.w * 0.28 * smoothstep(0.4, 1.6, wave) + flash() * 0.3);
        float path = exp(-22.0 * abs(p.x - aspect * 0.60) * (0.35 + 0.3 * near));
        shown += clear * path * crest * vec3(0.75, 0.70, 0.55);
        float lit = abs(beam.x) * smoothstep(-0.05, 0.3, (p.x - lamp_at(aspect).x) * beam.x);
        return shown + crest * lit * 0.22 * vec3(1.0, 0.9, 0.65);
    }
    return shown;
}

vec4 tower(vec2 p, float aspect) {  // and its rock: a colour, and how much of it
    vec2 at = p - vec2(lamp_at(aspect).x, 0.0);
    float pixel = 1.5 / size.y, light = 0.45 + 0.35 * smoothstep(0.06, -0.06, at.x) + 0.5 * flash();
    float ground = 0.245 - 0.9 * at.x * at.x - 0.10 * abs(at.x) + 0.03 * noise(vec2(at.x * 26.0, 1.0)) + 0.012 * noise(vec2(at.x * 70.0, 5.0));
    float rock = smoothstep(pixel, -pixel, p.y - ground);
    vec3 stone = mix(vec3(0.035, 0.04, 0.06), vec3(0.45, 0.48, 0.56), weather.y * smoothstep(0.035, 0.0, ground - p.y));
    stone *= 0.7 + 0.6 * clouds(p * vec2(16.0, 26.0));
    float wide = mix(0.052, 0.033, clamp((p.y - 0.22) / 0.38, 0.0, 1.0));
    float body = smoothstep(pixel, -pixel, abs(at.x) - wide) * step(p.y, 0.605) * step(0.20, p.y);
    float stripe = smoothstep(-0.02, 0.02, sin((p.y - 0.205) * 47.0 + at.x * 3.0));
    vec3 shown = mix(vec3(0.50, 0.12, 0.12), vec3(0.72, 0.70, 0.68), stripe) * light;
    vec2 pane = abs(at - vec2(0.0, 0.345)) - vec2(0.009, 0.017);
    float window = smoothstep(pixel, -pixel, max(pane.x, pane.y));
    shown = mix(shown, vec3(1.0, 0.74, 0.35) * (0.9 + 0.1 * sin(time * 9.0) * sin(time * 5.3)), window);
    float covered = body;
    float gallery = smoothstep(pixel, -pixel, max(abs(at.x) - 0.048, abs(p.y - 0.611) - 0.008));
    shown = mix(shown, vec3(0.06, 0.065, 0.09), gallery);
    covered = max(covered, gallery);
    float glass = smoothstep(pixel, -pixel, max(abs(at.x) - 0.028, abs(p.y - 0.655) - 0.036));
    float bars = smoothstep(0.0015, 0.0035, abs(fract(at.x * 53.0 + 0.5) - 0.5) / 53.0);
    vec3 lamp = mix(vec3(0.06), vec3(1.0, 0.88, 0.58), (0.55 + 0.45 * max(0.0, beam.y)) * exp(-900.0 * dot(at - vec2(0, 0.66), at - vec2(0, 0.66))) + 0.25);
    shown = mix(shown, lamp * (0.4 + 0.6 * bars), glass);
    covered = max(covered, glass);
    float roof = smoothstep(pixel, -pixel, max(abs(at.x) - 0.040 * (0.738 - p.y) / 0.047, 0.691 - p.y));
    shown = mix(shown, mix(vec3(0.30, 0.07, 0.08), vec3(0.8), weather.y * 0.8), roof);
    covered = max(covered, roof);
    shown = mix(shown, stone, rock);
    return vec4(shown, max(covered, rock));
}

float rain(vec2 p) {
    float drops = 0.0, slant = 0.10 + 0.55 * weather.w;
    for (int layer = 0; layer < 3; layer++) {
        float near = 1.0 + 0.5 * float(layer);
        vec2 at = vec2((p.x + slant * p.y) * 70.0 / near, p.y * 3.2 / near + time * (3.6 + 0.4 * float(layer)));
        float column = floor(at.x), lot = hash(vec2(column, float(layer)));
        float down = fract(at.y + lot * 13.0);
        drops += step(0.55, lot) * smoothstep(0.35, 0.0, abs(fract(at.x) - 0.5) * near) * smoothstep(0.80, 1.0, down);
    }
    return drops;
}

float snow(vec2 p) {
    float flakes = 0.0;
    for (int layer = 0; layer < 5; layer++) {
        float fine = 9.0 + 5.0 * float(layer);
        vec2 at = p * fine + vec2(1.2 * sin(time * 0.5 + float(layer)), time * (1.5 + 0.35 * float(layer)));
        vec2 cell = floor(at), off = vec2(hash(cell + float(layer) * 31.0), hash(cell + 5.0)) * 0.6 + 0.2;
        float lot = hash(cell + 13.0);
        flakes += step(0.35, lot) * smoothstep(0.10 + 0.06 * lot, 0.02, length(fract(at) - off)) * (1.0 - 0.13 * float(layer));
    }
    return flakes;
}

void main() {
    vec2 p = gl_FragCoord.xy / size.y;
    float aspect = size.x / size.y, clear = clamp(1.0 - dot(weather, vec4(1.0, 0.9, 0.95, 1.0)), 0.0, 1.0);
    vec3 shown = p.y > HORIZON - 0.08 ? sky(p, aspect, clear) : vec3(0.0);
    if (p.y < HORIZON + 0.06) shown = sea(p, aspect, clear, shown);
    if (abs(p.x - lamp_at(aspect).x) < 0.05 || (p.y < 0.3 && p.x > lamp_at(aspect).x - 0.6)) {
        vec4 built = tower(p, aspect);
        shown = mix(shown, built.rgb, built.a);
    }
    if (weather.z > 0.01) {
        float thick = 0.30 + 0.55 * clouds(vec2(p.x * 1.3 - time * 0.05, p.y * 2.2 + time * 0.015));
        shown = mix(shown, vec3(0.36, 0.38, 0.43), weather.z * thick * smoothstep(1.05, 0.1, p.y));
    }
    float thick = 0.42 + 0.5 * weather.z + 0.2 * (weather.x + weather.y + weather.w);
    shown += thick * beam_at(p, aspect, beam) * vec3(1.0, 0.88, 0.62);
    vec2 away = p - lamp_at(aspect);
    shown += vec3(1.0, 0.84, 0.55) * (0.20 * exp(-26.0 * length(away)) + max(0.0, beam.y) * max(0.0, beam.y) * 0.7 * exp(-14.0 * length(away)));
    if (weather.x + weather.w > 0.01) shown += 0.14 * (weather.x + weather.w) * rain(p) * vec3(0.75, 0.85, 1.0);
    if (weather.y > 0.01) shown = mix(shown, vec3(0.93, 0.95, 1.0), min(1.0, weather.y * snow(p)) * 0.85);
    shown *= 1.0 - 0.25 * dot(p / vec2(aspect, 1.0) - 0.5, p / vec2(aspect, 1.0) - 0.5);
    color = vec4(shown, 1.0);
}
