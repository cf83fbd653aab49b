package export

import (
	"cmp"

	"trajgen/pipeline/episode"
)

var skyrlDatasetFormat = Format{
	trains: true,
	About:  "tasks as SkyRL reads them (Parquet), one row for the first sample of each",
	Settings: map[string]Setting{
		"data_source": {About: "names where the tasks are from (default: the run's dataset)"},
		"env_class":   {About: "is the environment that plays the tasks, by the name under which SkyRL knows it (default trajgen)"},
	},
	open: func(path string, options Options) (target, error) {
		var seen firsts
		n := notes{}
		return openRowSink(path, rowKind{as: "parquet", name: "skyrl-dataset", id: "id"}, options, n, func(ep *episode.Episode) (*skyrlTask, error) {
			return newSkyRLTask(ep, options, &seen, n)
		})
	},
}

type skyrlTask struct {
	ID         string        `parquet:"id"`
	DataSource string        `parquet:"data_source,dict"`
	Prompt     []verlMessage `parquet:"prompt,list"`
	EnvClass   string        `parquet:"env_class,dict"`
	RewardSpec skyrlReward   `parquet:"reward_spec"`
	ExtraInfo  skyrlExtra    `parquet:"extra_info"`
}

type skyrlReward struct {
	Method      string `parquet:"method,dict"`
	GroundTruth string `parquet:"ground_truth"`
}

type skyrlExtra struct {
	Index    int64   `parquet:"index"`
	TaskID   string  `parquet:"task_id"`
	Answer   string  `parquet:"answer"`
	Image    *string `parquet:"image,optional,dict"`
	Cwd      *string `parquet:"cwd,optional,dict"`
	Setup    *string `parquet:"setup,optional"`
	Metadata *string `parquet:"metadata,optional"` // the JSON of what else the dataset says
}

func newSkyRLTask(ep *episode.Episode, options Options, seen *firsts, n notes) (*skyrlTask, error) {
	prompt, truth, err := seen.task(ep, n, asIs)
	if err != nil {
		return nil, err
	}
	return &skyrlTask{
		ID: ep.Key.Task, DataSource: cmp.Or(options.Set["data_source"], options.Run.Dataset, "trajgen"), Prompt: prompt,
		EnvClass: cmp.Or(options.Set["env_class"], "trajgen"), RewardSpec: skyrlReward{"rule", truth},
		ExtraInfo: skyrlExtra{
			Index: int64(ep.Row), TaskID: ep.Key.Task, Answer: answerOf(&ep.Task), Image: present(ep.Task.Image),
			Cwd: present(ep.Task.Cwd), Setup: present(ep.Task.Setup), Metadata: present(string(ep.Task.Metadata)),
		},
	}, nil
}
