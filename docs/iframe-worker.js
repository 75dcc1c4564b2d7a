// Search in pages that are opened from a folder: browsers allow no Worker there. A hidden frame runs its script instead.
"use strict"
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.documentElement.append(this.frame)
      const scope = this.frame.contentWindow
      scope.postMessage = data => this.dispatchEvent(new MessageEvent("message", { data }))
      scope.importScripts = (...urls) => urls.reduce((done, one) => done.then(() => this.load(one)), Promise.resolve())
      this.ready = this.load(url)
    }
    load(url) {
      return new Promise((resolve, reject) => {
        const script = this.frame.contentDocument.createElement("script")
        script.src = new URL(url, location.href)
        script.onload = resolve
        script.onerror = () => { this.dispatchEvent(new ErrorEvent("error", { message: `cannot load ${url}` })); reject() }
        this.frame.contentDocument.head.append(script)
      })
    }
    postMessage(data) {
      const scope = this.frame.contentWindow
      this.ready.then(() => scope.dispatchEvent(new scope.MessageEvent("message", { data })))
    }
    terminate() {
      this.frame.remove()
    }
  }
  window.Worker = window.IFrameWorker
}
