// The sequences of a recurrent layer: their lengths, and the directions in which they are read.
#ifdef LENGTHS
int length_of(int b) { return min(max(int(L(b)), 0), steps); }
#else
int length_of(int b) { return steps; }
#endif
bool backwards(int d) { return (reverse >> d & 1) == 1; }
