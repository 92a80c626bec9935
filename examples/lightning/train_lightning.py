"""A Lightning module, trained by all ranks together.

ModelCheckpoint saves ./train_logs/*.ckpt, and last.ckpt beside them. When a rank is
lost all start again, and fit(ckpt_path="last") goes on from the newest: so every rank
must see the same ./train_logs.

    yarn-submit run --worker 2 --checkpoint ./train_logs=hdfs:///user/alice/lightning \
        --files train_lightning.py -- python train_lightning.py --nodes {world_size} --steps 200
"""
import argparse
import time

import lightning as L
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--nodes", type=int, default=1)
parser.add_argument("--steps", type=int, default=200)
parser.add_argument("--save_steps", type=int, default=20, help="steps between checkpoints")
parser.add_argument("--step_secs", type=float, default=0.05, help="how long a step takes at least")
FLAGS = parser.parse_args()


class Model(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(10, 32), torch.nn.ReLU(), torch.nn.Linear(32, 1))

    def training_step(self, batch, index):
        x, y = batch
        return torch.nn.functional.mse_loss(self.layers(x), y)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=0.01)


class Report(Callback):
    """Prints a line now and then: a bar is not for a log."""

    def on_train_start(self, trainer, module):
        print("rank %d of %d begins at step %d" % (trainer.global_rank, trainer.world_size, trainer.global_step), flush=True)

    def on_train_batch_end(self, trainer, module, outputs, batch, index):
        time.sleep(FLAGS.step_secs)
        if trainer.is_global_zero and trainer.global_step % 5 == 0:
            print("step %d loss %.6f" % (trainer.global_step, outputs["loss"].item()), flush=True)


def main():
    torch.set_num_threads(1)
    L.seed_everything(1)
    x = torch.rand(3200, 10)
    data = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=32, shuffle=True)
    trainer = L.Trainer(
        accelerator="cpu", devices=1, num_nodes=FLAGS.nodes, max_steps=FLAGS.steps,
        enable_progress_bar=False, logger=False, log_every_n_steps=1,
        callbacks=[Report(), ModelCheckpoint("./train_logs", every_n_train_steps=FLAGS.save_steps, save_top_k=3,
                                             monitor="step", mode="max", save_last=True)],
    )
    trainer.fit(Model(), data, ckpt_path="last")
    print("final step %d" % trainer.global_step, flush=True)


if __name__ == "__main__":
    main()
