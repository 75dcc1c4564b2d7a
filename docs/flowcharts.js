// Draws flowcharts: lines such as "a --> b" in a `pre.flowchart` become a picture. `dagre.min.js` finds the places.
"use strict"
const HIGH = 28 // pixels of a box

function element(name, attributes, text = "") {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name)
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value)
  made.textContent = text
  return made
}

function drawFlowchart(lines) {
  const graph = new dagre.graphlib.Graph()
  graph.setGraph({ nodesep: 8, edgesep: 12, ranksep: 21, marginx: 4, marginy: 4 })
  for (const [begin, end] of lines) {
    for (const name of [begin, end]) graph.setNode(name, { label: name, width: 7.8 * name.length + 12, height: HIGH })
    graph.setEdge(begin, end, {})
  }
  dagre.layout(graph)
  const { width, height } = graph.graph()
  const picture = element("svg", { viewBox: `0 0 ${width} ${height}`, style: `min-width: ${Math.min(width, 720)}px` })
  const arrow = element("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 8, refY: 4, markerWidth: 7, orient: "auto" })
  arrow.append(element("path", { d: "M0 0 L8 4 L0 8 z" }))
  picture.append(arrow)
  const rows = new Set(graph.nodes().map((name) => graph.node(name).y))
  for (const edge of graph.edges()) {
    // an edge leaves below a box and enters from above; where it passes a row, it goes straight down beside the boxes
    const [begin, end] = [graph.node(edge.v), graph.node(edge.w)]
    const passed = graph.edge(edge).points.filter(({ y }) => rows.has(y))
    const bends = passed.flatMap(({ x, y }) => [[x, y - HIGH / 2], [x, y + HIGH / 2]])
    const points = [[begin.x, begin.y + HIGH / 2], ...bends, [end.x, end.y - HIGH / 2]].map(([x, y]) => `${x} ${y}`)
    picture.append(element("path", { class: "edge", d: `M${points.join("L")}`, "marker-end": "url(#arrow)" }))
  }
  for (const name of graph.nodes()) {
    const { x, y, width, height } = graph.node(name)
    picture.append(element("rect", { x: x - width / 2, y: y - height / 2, width, height, rx: 4 }))
    picture.append(element("text", { x, y: y + 4 }, name))
  }
  return picture
}

for (const block of document.querySelectorAll("pre.flowchart")) {
  const lines = [...block.textContent.matchAll(/^\s*(\S+) --> (\S+)$/gm)].map(([, begin, end]) => [begin, end])
  const place = document.createElement("div")
  place.className = "flowchart"
  place.append(drawFlowchart(lines))
  block.replaceWith(place)
}
