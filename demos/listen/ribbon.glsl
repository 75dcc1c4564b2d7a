#version 330
// Spectra above, the ribbon below; both glow where somebody spoke. The newest column is at the right.
uniform sampler2D history;  // rows: bands from high to low, then loudness, then the probability of a voice
uniform int rows;
uniform vec2 size;
uniform float late;  // chunks of four columns that have sounded since the newest column
out vec4 color;

const float BAR = 4.0;  // columns

float row_at(float column, int row) {
    ivec2 texels = textureSize(history, 0);
    return texelFetch(history, ivec2(clamp(int(column), 0, texels.x - 1), row), 0).r;
}

float spectrum_at(vec2 at) {  // between texels: x in columns, y in bands from the top
    vec2 low = floor(at - 0.5), part = at - 0.5 - low;
    int top = clamp(int(low.y), 0, rows - 3), bottom = clamp(int(low.y) + 1, 0, rows - 3);
    float upper = mix(row_at(low.x, top), row_at(low.x + 1.0, top), part.x);
    return mix(upper, mix(row_at(low.x, bottom), row_at(low.x + 1.0, bottom), part.x), part.y);
}

vec3 cold(float x) { return mix(vec3(0.03, 0.045, 0.10), vec3(0.30, 0.44, 0.66), x) * (0.35 + 0.65 * x); }

vec3 warm(float x) {
    vec3 low = mix(vec3(0.10, 0.03, 0.14), vec3(0.78, 0.17, 0.42), smoothstep(0.0, 0.45, x));
    return mix(mix(low, vec3(1.0, 0.58, 0.22), smoothstep(0.35, 0.75, x)), vec3(1.0, 0.95, 0.75), smoothstep(0.7, 1.0, x));
}

float sure_at(float column) {  // without the steps of chunks
    float sum = 0.0, low = floor(column - 0.5), part = column - 0.5 - low;
    for (int away = -3; away <= 4; away++) {
        float share = away == -3 ? 1.0 - part : away == 4 ? part : 1.0;
        sum += share * row_at(low + float(away), rows - 1);
    }
    return sum / 7.0;
}

float voice_at(float column) { return smoothstep(0.15, 0.85, sure_at(column)); }

void main() {
    vec2 place = vec2(gl_FragCoord.x, size.y - gl_FragCoord.y) / size;
    float columns = float(textureSize(history, 0).x);
    float column = place.x * columns + clamp(late, 0.0, 1.0) * 4.0 - 4.0;
    float voice = voice_at(column);
    float fade = smoothstep(0.0, 0.08, place.x);
    vec3 night = mix(vec3(0.028, 0.034, 0.070), vec3(0.050, 0.050, 0.100), place.y);
    vec3 shown = night + fade * voice * vec3(0.055, 0.018, 0.035);
    if (place.y < 0.62) {  // spectra
        float at = (place.y - 0.10) / 0.52;
        float loud = at < 0.0 ? 0.0 : spectrum_at(vec2(column, at * float(rows - 2)));
        vec3 light = mix(cold(loud), warm(loud), voice);
        shown = mix(shown, light, fade * smoothstep(0.02, 0.3, loud) * smoothstep(0.0, 0.04, at));
    }
    // the ribbon: bars around its middle, as loud as they are high
    float index = floor(column / BAR), inside = (fract(column / BAR) - 0.5) * BAR * size.x / columns;
    float loud = 0.0;
    for (int one = 0; one < int(BAR); one++) loud = max(loud, row_at(index * BAR + float(one), rows - 2));
    float bar_voice = voice_at((index + 0.5) * BAR);
    float reach = (0.006 + 0.115 * sqrt(loud)) * size.y, thick = 0.30 * BAR * size.x / columns;
    float down = abs(place.y - 0.79) * size.y;
    float away = length(vec2(inside, max(down - reach + thick, 0.0))) - thick;
    vec3 light = mix(vec3(0.28, 0.36, 0.52), mix(vec3(1.0, 0.66, 0.28), vec3(0.98, 0.30, 0.48), down / max(reach, 1.0)), bar_voice);
    shown += fade * bar_voice * vec3(0.95, 0.36, 0.25) * 0.30 * exp(-max(down - 0.4 * reach, 0.0) / (0.05 * size.y));
    shown = mix(shown, light, fade * clamp(0.5 - away, 0.0, 1.0));
    // the line of the probability, at the foot
    float line = (0.985 - 0.045 * sure_at(column) - place.y) * size.y;
    shown = mix(shown, vec3(1.0, 0.86, 0.55), fade * (0.28 * step(line, 0.0) * voice + 0.75 * clamp(1.6 - abs(line), 0.0, 1.0)));
    color = vec4(shown, 1.0);
}
