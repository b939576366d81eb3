#include "engine.h"
const struct engine_case post_cases[] = { {} };
