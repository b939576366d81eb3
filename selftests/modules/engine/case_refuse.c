#include "engine.h"
const struct engine_case refuse_cases[] = { {} };
