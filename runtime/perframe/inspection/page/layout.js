"use strict";
// The layout runs in a worker, so that the page answers meanwhile. dagre takes more than linear time, and its recursion is
// as deep as the graph: a long graph is cut where all paths meet in one box, and its pieces are stacked.

function layoutInWorker() {
  const PIECE = 120; // boxes, at least, of a piece that is laid out alone

  // The boxes in an order in which edges lead forward; an input stands before its first reader.
  function ordered({ boxes, edges }) {
    const first = new Map();
    for (const [from, to] of edges) if (!first.has(from) || to < first.get(from)) first.set(from, to);
    const position = at => boxes[at][2] === "input" ? (first.get(at) ?? 0) - 0.5 : at;
    const maker = new Map(edges.map(([from, to]) => [to, from]));
    const place = boxes.map((box, at) => box[2] === "output" ? (maker.get(at) ?? at) + 0.25 : position(at));
    return boxes.map((_, at) => at).sort((a, b) => place[a] - place[b] || a - b);
  }

  function pieces(graph) {
    const order = ordered(graph), rank = new Map(order.map((box, at) => [box, at]));
    const reach = new Array(order.length).fill(0), leads = new Array(order.length).fill(false);
    for (const [from, to] of graph.edges) {
      const at = rank.get(from);
      reach[at] = Math.max(reach[at], rank.get(to));
      leads[at] = true;
    }
    const found = [];
    let begin = 0, far = 0, ends = false;
    for (let at = 0; at < order.length; at++) {
      const isCut = at > 0 && far <= at && !ends && graph.boxes[order[at]][2] !== "output";
      if (isCut && at - begin >= PIECE && order.length - at > PIECE / 2) {
        found.push(order.slice(begin, at + 1));
        begin = at;
        ends = false;
      }
      far = Math.max(far, reach[at]);
      if (at > begin && !leads[at] && graph.boxes[order[at]][2] !== "output") ends = true;
    }
    found.push(order.slice(begin));
    return found;
  }

  function arranged(graph, piece, edges) {
    const laid = new dagre.graphlib.Graph();
    const ranker = piece.length > 400 ? "tight-tree" : "network-simplex";
    laid.setGraph({ ranksep: 34, nodesep: 22, edgesep: 12, ranker });
    laid.setDefaultEdgeLabel(() => ({}));
    for (const box of piece) laid.setNode(String(box), { width: graph.boxes[box][0], height: graph.boxes[box][1] });
    for (const [from, to] of edges) laid.setEdge(String(from), String(to));
    dagre.layout(laid);
    return {
      place: box => { const { x, y } = laid.node(String(box)); return [x, y]; },
      path: ([from, to]) => laid.edge(String(from), String(to)).points.map(({ x, y }) => [x, y]),
    };
  }

  // Where dagre gives up: a row for each step of the longest path, filled from the left.
  function rows(graph, piece, edges) {
    const depth = new Map(piece.map(box => [box, 0])), width = new Map(), spot = new Map();
    for (const [from, to] of edges) depth.set(to, Math.max(depth.get(to), depth.get(from) + 1));
    for (const box of piece) {
      const row = depth.get(box), x = width.get(row) || 0;
      spot.set(box, [x + graph.boxes[box][0] / 2, row * 96 + 30]);
      width.set(row, x + graph.boxes[box][0] + 24);
    }
    return { place: box => spot.get(box), path: ([from, to]) => [spot.get(from), spot.get(to)] };
  }

  self.onmessage = ({ data: graph }) => {
    const spots = new Array(graph.boxes.length), paths = new Array(graph.edges.length);
    for (const piece of pieces(graph)) {
      const within = new Set(piece), own = [];
      graph.edges.forEach((edge, at) => { if (within.has(edge[0]) && within.has(edge[1])) own.push(at); });
      const edges = own.map(at => graph.edges[at]);
      let laid;
      try {
        laid = arranged(graph, piece, edges);
      } catch (error) { // too deep for its recursion
        edges.sort(([a], [b]) => a - b);
        laid = rows(graph, piece, edges);
      }
      const [x, y] = laid.place(piece[0]), [toX, toY] = spots[piece[0]] || [x, y];
      const moved = ([a, b]) => [a - x + toX, b - y + toY];
      for (const box of piece) spots[box] = moved(laid.place(box));
      for (const at of own) paths[at] = laid.path(graph.edges[at]).map(moved);
    }
    let left = Infinity, top = Infinity, right = 1, bottom = 1;
    spots.forEach(([x, y], at) => {
      left = Math.min(left, x - graph.boxes[at][0] / 2);
      top = Math.min(top, y - graph.boxes[at][1] / 2);
    });
    const home = ([x, y]) => [x - left, y - top];
    spots.forEach(([x, y], at) => {
      right = Math.max(right, x - left + graph.boxes[at][0] / 2);
      bottom = Math.max(bottom, y - top + graph.boxes[at][1] / 2);
    });
    self.postMessage({
      ticket: graph.ticket, boxes: spots.map(home), edges: paths.map(path => path.map(home)), size: [right, bottom],
    });
  };
}

const Layout = (() => {
  const library = document.getElementById("layout-library").textContent;
  const waiting = new Map();
  let worker, tickets = 0;
  function start() {
    const code = `${library}\n(${layoutInWorker})();`;
    worker = new Worker(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
    worker.onmessage = ({ data }) => {
      waiting.get(data.ticket)?.(data);
      waiting.delete(data.ticket);
    };
  }
  return graph => new Promise(resolve => {
    if (!worker) start();
    const ticket = ++tickets;
    waiting.set(ticket, resolve);
    worker.postMessage({
      ticket,
      boxes: graph.boxes.map(box => [box.width, box.height, box.kind]),
      edges: graph.edges.map(edge => [edge.from, edge.to]),
    });
  });
})();
