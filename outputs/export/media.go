package export

import (
	"os"

	"trajgen/outputs/rows"
	"trajgen/pipeline/episode"
)

const mediaName = "media"

const noteMissing = "images that are missing: their rows have no bytes"

// mediaTable writes media/: the images of all episodes, each once. Where there are none it writes nothing.
type mediaTable struct {
	*parquetTable[rows.Media] // nil before the first image
	notes
	options Options
	dir     string
	begin   func() (partFiles, error)
	written map[string]bool
}

func newMediaTable(options Options, dir string, begin func() (partFiles, error)) *mediaTable {
	return &mediaTable{options: options, dir: dir, begin: begin, notes: notes{}, written: map[string]bool{}}
}

// add writes the images of an episode that no episode before it had.
func (m *mediaTable) add(ep *episode.Episode) error {
	for _, image := range ep.Images() {
		if m.written[image.SHA256] {
			continue
		}
		m.written[image.SHA256] = true
		if err := m.open(); err != nil {
			return err
		}
		row := rows.Media{
			SHA256: image.SHA256, MIME: image.MIME, Width: int32(image.Width), Height: int32(image.Height),
			Original: present(image.Original), Origin: rows.Origin(ep, image.SHA256),
		}
		if m.options.Images != nil {
			row.Bytes, _ = m.options.Images(image.SHA256) // what is missing, verify names
		}
		if row.Bytes == nil {
			m.notes[noteMissing]++
		}
		if err := m.put(row); err != nil {
			return err
		}
	}
	return nil
}

func (m *mediaTable) open() error {
	if m.parquetTable != nil {
		return nil
	}
	parts, err := m.begin()
	if err != nil {
		return err
	}
	m.parquetTable, err = newTable[rows.Media](parts, rows.Medias, "sha256", m.options)
	return err
}

func (m *mediaTable) end() error {
	if m.parquetTable == nil {
		return nil
	}
	return m.parquetTable.end()
}

// commit names the files. It removes the images of an earlier export where this one has none.
func (m *mediaTable) commit() ([]FileInfo, error) {
	if m.parquetTable != nil {
		return m.parts.commit()
	}
	if _, err := os.Stat(m.dir); err != nil {
		return nil, nil
	}
	parts, err := m.begin()
	if err != nil {
		return nil, err
	}
	return parts.commit()
}

func (m *mediaTable) close() error {
	if m.parquetTable == nil {
		return nil
	}
	return m.parts.close()
}
