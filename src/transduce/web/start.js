// Shows the report that the page carries.

import { showAttention } from "./attention.js";

showAttention(JSON.parse(document.getElementById("report").textContent));
