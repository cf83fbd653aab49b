package registry

import (
	"errors"

	"trajgen/outputs/media/picture"
	"trajgen/pipeline/episode"
)

// maxImages is how many images one call can attach.
const maxImages = 8

// Image is an image as a tool has it. Its bytes say what it is; MIME is what its source claims.
type Image struct {
	MIME string
	Data []byte
	// File says that it is not an image but a sound or another file, which is kept as it is.
	File bool
}

// Images keeps the images that tools attach to their results. It is called from many goroutines at once.
type Images interface {
	// Keep prepares an image for the model and keeps it. A *picture.Unusable says what is wrong with the image; any other error is
	// of the disk.
	Keep(mime string, data []byte) (episode.Part, error)
}

// Files is what Images may be, too: it keeps files as they are. An error is of the disk.
type Files interface {
	KeepFile(mime string, data []byte) (episode.Part, error)
}

// Attach puts an image beside the call's result, for a model that takes images. The conversation gets it after the result. A tool
// may attach several; its error says what is wrong with the image, in words for the model.
func (e *Env) Attach(image Image) error {
	switch {
	case !e.Sees():
		return Failf("no_vision", "the model of this run takes no images")
	case e.Parent != "":
		return Failf("no_vision", "a script cannot show an image; call the tool directly")
	}
	_, err := e.keep(image, true)
	return err
}

// Keep prepares an image for models and keeps it beside the run, without showing it to the agent's; or it keeps a file. Its error
// says what is wrong with it, in words for the model.
func (e *Env) Keep(image Image) (episode.Part, error) { return e.keep(image, false) }

func (e *Env) keep(image Image, shown bool) (episode.Part, error) {
	kept := e.Session.cfg.Images
	files, keepsFiles := kept.(Files)
	var part episode.Part
	var err error
	switch {
	case kept == nil:
		return part, Failf("no_vision", "this episode keeps no images")
	case !image.File:
		part, err = kept.Keep(image.MIME, image.Data)
	case keepsFiles:
		part, err = files.KeepFile(image.MIME, image.Data)
	default:
		return part, Failf("no_files", "this episode keeps no files")
	}
	if bad, ok := errors.AsType[*picture.Unusable](err); ok {
		return part, Failf("bad_image", "%v", bad)
	}
	if err != nil {
		return part, &Failure{Class: "image_store", Message: "the image could not be kept: " + err.Error(), Broken: true}
	}
	return part, e.meter.keep(part, image, shown)
}

// Sees reports whether the run's model takes images.
func (e *Env) Sees() bool { return e.Session.cfg.Sees }

// keep takes note of an image that was kept.
func (m *meter) keep(part episode.Part, image Image, shown bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.keeps {
		m.kept = append(m.kept, AnswerImage{image, shown})
	}
	switch {
	case !shown:
		return nil
	case m.ended:
		return Failf("closed", "the call has ended")
	case len(m.images) == maxImages:
		return Failf("too_many_images", "a call can show at most %d images", maxImages)
	}
	m.images = append(m.images, part)
	return nil
}
