/** The whole page: it loads the language, finds the index, and puts the components together. */

import { loadLanguage } from "./texts.js";

await loadLanguage();
