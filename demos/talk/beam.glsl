// The light of the lighthouse, for the scene and for the letters. Places are in heights of the picture, y up.
vec2 lamp_at(float aspect) { return vec2(aspect - 0.30, 0.660); }

float beam_at(vec2 place, float aspect, vec2 beam) {  // beam: the sine and cosine of its angle
    vec2 away = place - lamp_at(aspect);
    float along = away.x * beam.x;
    float spread = 0.012 + 0.10 * abs(away.x) + 0.25 * (1.0 - abs(beam.x));
    float across = (away.y + 0.02 * abs(away.x)) / spread;
    float side = smoothstep(-0.02, 0.05, along);
    return side * abs(beam.x) * exp(-across * across * 2.5) * exp(-0.75 * length(away));
}
