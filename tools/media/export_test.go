package media

// Draw exposes the renderer.
var Draw = draw

// Sizes exposes the sizes of pictures.
var Sizes = sizes
