#include "engine.h"
const struct engine_case life_cases[] = { {} };
