// Shows the report that the page carries; a page without one asks its server for it.

import { showAttention } from "./attention.js";

const carried = document.getElementById("report").textContent;
if (carried) showAttention([].concat(JSON.parse(carried))[0]);
else import("./served.js").then(({ begin }) => begin()); // asked for by name: a page on disk does not take it along
