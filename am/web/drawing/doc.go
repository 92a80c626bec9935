// Package drawing lays out what the pages of a job draw: the timeline, charts of measurements,
// and histograms of tensors. The templates of the pages make SVG of that.
//
// No library draws them. go-analyze/charts, and wcharczuk/go-chart before it, write a style
// attribute with its colors into each element (styleAsSVG in vector_renderer.go), which the pages'
// Content-Security-Policy forbids and which knows neither light nor dark; classes in its place are
// for chartdraw alone, without the charts. Positions are whole pixels of a picture with a given
// width and height, so a phone and a wide screen need two; texts, among which are names that
// programs choose, are written by its renderer as they are; and there are no links, and no titles
// to rest on. go-echarts draws with a script, which its page loads from another
// host. Here positions are parts of the width, so one drawing fits any screen; colors are the
// style sheet's; texts are the template's, which escapes them; marks are links that Tab reaches;
// and points have as many digits as can be seen, since a drawing is sent again with each update.
// What is left for a library are the round numbers of an axis, some forty lines.
package drawing
