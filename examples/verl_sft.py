"""verl's multi-turn dataset over an export to verl-sft.

In the export, tools and arguments are JSON: as structs of Parquet, each call would have the arguments of all other tools as
nulls, and a chat template would write them. verl is told of this class with

    data.custom_cls.path=examples/verl_sft.py data.custom_cls.name=TrajgenSFTDataset
"""

import json

from verl.utils.dataset.multiturn_sft_dataset import MultiTurnSFTDataset


class TrajgenSFTDataset(MultiTurnSFTDataset):
    def _read_files_and_process(self):
        super()._read_files_and_process()
        if self.tools is not None:
            self.tools = [[json.loads(tool) for tool in tools] for tools in self.tools]

    def _build_messages(self, example):
        messages = []
        for message in super()._build_messages(example):
            # Templates ask whether a key is there; in Parquet all are.
            message = {key: value for key, value in message.items() if key == "content" or value is not None and value != []}
            for call in message.get("tool_calls", []):
                call["function"]["arguments"] = json.loads(call["function"]["arguments"])
            messages.append(message)
        return messages
