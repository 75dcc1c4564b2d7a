#version 330
// Nearness in more texels than the network has: its elements are weighed by how alike the picture is there (J. Kopf et
// al., Joint Bilateral Upsampling, 2007), so that edges of depth follow edges of the picture. Tops are in first rows.
uniform sampler2D picture;  // with mipmaps
uniform sampler2D nearness;
uniform vec2 size;
out float refined;

const int REACH = 2;
const float BORDER = 2.5;  // nearer to the edge networks saw padding, and are less sure
const float ALIKE = 0.09;  // colors that differ so much are of different things

void main() {
    vec2 at = gl_FragCoord.xy / size, elements = vec2(textureSize(nearness, 0));
    vec2 pixels = vec2(textureSize(picture, 0));
    float level = max(0.0, log2(pixels.x / elements.x) - 0.5);
    vec3 here = textureLod(picture, at, max(0.0, log2(pixels.x / size.x))).rgb;
    vec2 place = at * elements - 0.5, first = floor(place + 0.5);
    float sum = 0.0, weights = 0.0;
    for (int row = -REACH; row <= REACH; row++) {
        for (int column = -REACH; column <= REACH; column++) {
            vec2 element = first + vec2(column, row), away = element - place;
            vec2 tap = clamp((element + 0.5) / elements, BORDER / elements, 1.0 - BORDER / elements);
            vec3 unlike = (textureLod(picture, tap, level).rgb - here) / ALIKE;
            float weight = exp(-0.5 * dot(away, away)) * (exp(-0.5 * dot(unlike, unlike)) + 0.004);
            sum += weight * textureLod(nearness, tap, 0.0).r;
            weights += weight;
        }
    }
    refined = sum / weights;
}
